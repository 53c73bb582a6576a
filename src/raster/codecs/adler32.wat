;; Adler-32 (RFC 1950) over the memory of deflate.wat or inflate.wat.
(module
  (import "kernel" "memory" (memory 1))

  ;; The checksum of $length bytes from $p on, continued from $sums (1 at the start).
  (func (export "adler") (param $sums i32) (param $p i32) (param $length i32) (result i32)
    (local $end i32) (local $stop i32)
    (local $sixteen v128) (local $totals v128) (local $earlier v128) (local $within v128)
    (local $low i64) (local $high i64)
    (local.set $end (i32.add (local.get $p) (local.get $length)))
    (local.set $low (i64.extend_i32_u (i32.and (local.get $sums) (i32.const 0xffff))))
    (local.set $high (i64.extend_i32_u (i32.shr_u (local.get $sums) (i32.const 16))))
    ;; Over n bytes d(i) from 0: low grows by their sum, high by n low + the sum of (n - i) d(i). The lanes of $totals hold
    ;; sums of bytes, $earlier adds up their values before each 16 bytes, and $within adds the bytes of each 16, the first 16
    ;; times, the last once. 2048 times 16 bytes fit into 32 bits.
    (loop $part
      (local.set $stop
        (i32.add (local.get $p)
          (i32.and (i32.sub (local.get $end) (local.get $p)) (i32.const -16))))
      (if (i32.gt_u (i32.sub (local.get $stop) (local.get $p)) (i32.const 32768))
        (then (local.set $stop (i32.add (local.get $p) (i32.const 32768)))))
      (if (i32.lt_u (local.get $p) (local.get $stop))
        (then
          (local.set $high
            (i64.add (local.get $high)
              (i64.mul (local.get $low) (i64.extend_i32_u (i32.sub (local.get $stop) (local.get $p))))))
          (local.set $totals (v128.const i64x2 0 0))
          (local.set $earlier (v128.const i64x2 0 0))
          (local.set $within (v128.const i64x2 0 0))
          (loop $next
            (local.set $sixteen (v128.load (local.get $p)))
            (local.set $earlier (i32x4.add (local.get $earlier) (local.get $totals)))
            (local.set $totals
              (i32x4.add (local.get $totals)
                (i32x4.extadd_pairwise_i16x8_u (i16x8.extadd_pairwise_i8x16_u (local.get $sixteen)))))
            (local.set $within
              (i32x4.add (local.get $within)
                (i32x4.add
                  (i32x4.dot_i16x8_s
                    (i16x8.extend_low_i8x16_u (local.get $sixteen))
                    (v128.const i16x8 16 15 14 13 12 11 10 9))
                  (i32x4.dot_i16x8_s
                    (i16x8.extend_high_i8x16_u (local.get $sixteen))
                    (v128.const i16x8 8 7 6 5 4 3 2 1)))))
            (local.set $p (i32.add (local.get $p) (i32.const 16)))
            (br_if $next (i32.lt_u (local.get $p) (local.get $stop))))
          (local.set $low (i64.rem_u (i64.add (local.get $low) (call $across (local.get $totals))) (i64.const 65521)))
          (local.set $high
            (i64.rem_u
              (i64.add (local.get $high)
                (i64.add
                  (i64.shl (call $across (local.get $earlier)) (i64.const 4))
                  (call $across (local.get $within))))
              (i64.const 65521)))
          (br $part))))
    (block $done
      (loop $byte
        (br_if $done (i32.ge_u (local.get $p) (local.get $end)))
        (local.set $low (i64.rem_u (i64.add (local.get $low) (i64.load8_u (local.get $p))) (i64.const 65521)))
        (local.set $high (i64.rem_u (i64.add (local.get $high) (local.get $low)) (i64.const 65521)))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (br $byte)))
    (i32.wrap_i64 (i64.or (i64.shl (local.get $high) (i64.const 16)) (local.get $low))))

  ;; The sum of four lanes.
  (func $across (param $lanes v128) (result i64)
    (local $two v128)
    (local.set $two
      (i64x2.add
        (i64x2.extend_low_i32x4_u (local.get $lanes))
        (i64x2.extend_high_i32x4_u (local.get $lanes))))
    (i64.add (i64x2.extract_lane 0 (local.get $two)) (i64x2.extract_lane 1 (local.get $two)))))
