;; Which endmembers are on the wrong side of a set, in f64: members without an abundance, and others that would lower the residual.
(module
  (memory (export "memory") 1)

  ;; Bit i of the result is 1 if value i is below its limit. $table: for each pair of values, vectors of two numbers: of which part of $limit the values must
  ;; not be below, then the values for products of 0, then by how much each of the $count $products changes them.
  (func (export "wrong") (param $table i32) (param $products i32) (param $count i32) (param $limit f64) (result i32)
    (local $first i32) (local $bits i32) (local $product i32) (local $left i32) (local $least v128) (local $values v128)
    (loop $nextPair
      (local.set $least (f64x2.mul (f64x2.splat (local.get $limit)) (v128.load offset=0 (local.get $table))))
      (local.set $values (v128.load offset=16 (local.get $table)))
      (local.set $table (i32.add (local.get $table) (i32.const 32)))
      (local.set $product (local.get $products))
      (local.set $left (local.get $count))
      (loop $next
        (local.set $values (f64x2.add (local.get $values) (f64x2.mul (v128.load (local.get $table)) (v128.load64_splat (local.get $product)))))
        (local.set $table (i32.add (local.get $table) (i32.const 16)))
        (local.set $product (i32.add (local.get $product) (i32.const 8)))
        (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      (local.set $bits (i32.or (local.get $bits)
        (i32.shl (i64x2.bitmask (f64x2.lt (local.get $values) (local.get $least))) (local.get $first))))
      (local.set $first (i32.add (local.get $first) (i32.const 2)))
      (br_if $nextPair (i32.lt_u (local.get $first) (local.get $count))))
    (local.get $bits)))
