;; Loops over float32 values where they lie on the heap of tfjs. All places and distances are in bytes.
(module
  (import "tfjs" "memory" (memory 0))

  ;; y[i] = x[i] where that is not negative, else alpha x[i].
  (func (export "leakyRelu") (param $length i32) (param $alpha f32) (param $x i32) (param $y i32)
    (local $end i32) (local $v v128) (local $a v128) (local $isLeaky v128)
    ;; Zero times infinity must not come out.
    (local.set $a (f32x4.splat (local.get $alpha)))
    (local.set $isLeaky (f32x4.ne (local.get $a) (v128.const f32x4 0 0 0 0)))
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $length) (i32.const 2))))
    (block $done
      (loop $next
        (br_if $done (i32.gt_u (i32.add (local.get $x) (i32.const 16)) (local.get $end)))
        (local.set $v (v128.load (local.get $x)))
        (v128.store (local.get $y)
          (v128.bitselect
            (v128.and (f32x4.mul (local.get $a) (local.get $v)) (local.get $isLeaky))
            (local.get $v)
            (f32x4.lt (local.get $v) (v128.const f32x4 0 0 0 0))))
        (local.set $x (i32.add (local.get $x) (i32.const 16)))
        (local.set $y (i32.add (local.get $y) (i32.const 16)))
        (br $next)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $x) (local.get $end)))
        (local.set $v (v128.load32_zero (local.get $x)))
        (v128.store32_lane 0 (local.get $y)
          (v128.bitselect
            (v128.and (f32x4.mul (local.get $a) (local.get $v)) (local.get $isLeaky))
            (local.get $v)
            (f32x4.lt (local.get $v) (v128.const f32x4 0 0 0 0))))
        (local.set $x (i32.add (local.get $x) (i32.const 4)))
        (local.set $y (i32.add (local.get $y) (i32.const 4)))
        (br $next))))

  ;; dx[i] = dy[i] where x[i] is positive, else alpha dy[i].
  (func (export "leakyReluGradient") (param $length i32) (param $alpha f32) (param $x i32) (param $dy i32) (param $dx i32)
    (local $end i32) (local $a v128)
    (local.set $a (f32x4.splat (local.get $alpha)))
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $length) (i32.const 2))))
    (block $done
      (loop $next
        (br_if $done (i32.gt_u (i32.add (local.get $x) (i32.const 16)) (local.get $end)))
        (v128.store (local.get $dx)
          (f32x4.mul
            (v128.load (local.get $dy))
            (v128.bitselect
              (v128.const f32x4 1 1 1 1)
              (local.get $a)
              (f32x4.gt (v128.load (local.get $x)) (v128.const f32x4 0 0 0 0)))))
        (local.set $x (i32.add (local.get $x) (i32.const 16)))
        (local.set $dy (i32.add (local.get $dy) (i32.const 16)))
        (local.set $dx (i32.add (local.get $dx) (i32.const 16)))
        (br $next)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $x) (local.get $end)))
        (f32.store (local.get $dx)
          (f32.mul
            (f32.load (local.get $dy))
            (select
              (f32.const 1)
              (local.get $alpha)
              (f32.gt (f32.load (local.get $x)) (f32.const 0)))))
        (local.set $x (i32.add (local.get $x) (i32.const 4)))
        (local.set $dy (i32.add (local.get $dy) (i32.const 4)))
        (local.set $dx (i32.add (local.get $dx) (i32.const 4)))
        (br $next))))

  ;; Adds, for each channel, dy to `sums` and dy (x - mean) to `products`, both float64.
  (func (export "channelSums")
    (param $rows i32) (param $channels i32) (param $x i32) (param $dy i32) (param $mean i32) (param $sums i32) (param $products i32)
    (local $c i32) (local $end i32) (local $wide i32) (local $s i32) (local $p i32)
    (local $v v128) (local $d v128) (local $m v128) (local $low v128) (local $high v128)
    (local.set $end (i32.shl (local.get $channels) (i32.const 2)))
    (local.set $wide (i32.and (local.get $end) (i32.const -16)))
    (block $done
      (loop $row
        (br_if $done (i32.eqz (local.get $rows)))
        (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
        (local.set $c (i32.const 0))
        (local.set $s (local.get $sums))
        (local.set $p (local.get $products))
        (block $over
          (loop $next
            (br_if $over (i32.ge_u (local.get $c) (local.get $wide)))
            (local.set $v (v128.load (i32.add (local.get $x) (local.get $c))))
            (local.set $d (v128.load (i32.add (local.get $dy) (local.get $c))))
            (local.set $m (v128.load (i32.add (local.get $mean) (local.get $c))))
            (local.set $low (f64x2.promote_low_f32x4 (local.get $d)))
            (local.set $high
              (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 (local.get $d) (local.get $d))))
            (v128.store (local.get $s) (f64x2.add (v128.load (local.get $s)) (local.get $low)))
            (v128.store offset=16 (local.get $s) (f64x2.add (v128.load offset=16 (local.get $s)) (local.get $high)))
            (v128.store (local.get $p)
              (f64x2.add (v128.load (local.get $p))
                (f64x2.mul (local.get $low)
                  (f64x2.sub (f64x2.promote_low_f32x4 (local.get $v)) (f64x2.promote_low_f32x4 (local.get $m))))))
            (v128.store offset=16 (local.get $p)
              (f64x2.add (v128.load offset=16 (local.get $p))
                (f64x2.mul (local.get $high)
                  (f64x2.sub
                    (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 (local.get $v) (local.get $v)))
                    (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 (local.get $m) (local.get $m)))))))
            (local.set $s (i32.add (local.get $s) (i32.const 32)))
            (local.set $p (i32.add (local.get $p) (i32.const 32)))
            (local.set $c (i32.add (local.get $c) (i32.const 16)))
            (br $next)))
        (block $over
          (loop $next
            (br_if $over (i32.ge_u (local.get $c) (local.get $end)))
            (f64.store (local.get $s)
              (f64.add (f64.load (local.get $s)) (f64.promote_f32 (f32.load (i32.add (local.get $dy) (local.get $c))))))
            (f64.store (local.get $p)
              (f64.add (f64.load (local.get $p))
                (f64.mul
                  (f64.promote_f32 (f32.load (i32.add (local.get $dy) (local.get $c))))
                  (f64.sub
                    (f64.promote_f32 (f32.load (i32.add (local.get $x) (local.get $c))))
                    (f64.promote_f32 (f32.load (i32.add (local.get $mean) (local.get $c))))))))
            (local.set $s (i32.add (local.get $s) (i32.const 8)))
            (local.set $p (i32.add (local.get $p) (i32.const 8)))
            (local.set $c (i32.add (local.get $c) (i32.const 4)))
            (br $next)))
        (local.set $x (i32.add (local.get $x) (local.get $end)))
        (local.set $dy (i32.add (local.get $dy) (local.get $end)))
        (br $row))))

  ;; dx = scale dy + slope (x - mean) + offset, of each channel.
  (func (export "batchNormGradient")
    (param $rows i32) (param $channels i32) (param $x i32) (param $dy i32)
    (param $mean i32) (param $scale i32) (param $slope i32) (param $offset i32) (param $dx i32)
    (local $c i32) (local $end i32) (local $wide i32)
    (local.set $end (i32.shl (local.get $channels) (i32.const 2)))
    (local.set $wide (i32.and (local.get $end) (i32.const -16)))
    (block $done
      (loop $row
        (br_if $done (i32.eqz (local.get $rows)))
        (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
        (local.set $c (i32.const 0))
        (block $over
          (loop $next
            (br_if $over (i32.ge_u (local.get $c) (local.get $wide)))
            (v128.store (i32.add (local.get $dx) (local.get $c))
              (f32x4.add
                (f32x4.add
                  (f32x4.mul (v128.load (i32.add (local.get $scale) (local.get $c))) (v128.load (i32.add (local.get $dy) (local.get $c))))
                  (f32x4.mul (v128.load (i32.add (local.get $slope) (local.get $c)))
                    (f32x4.sub (v128.load (i32.add (local.get $x) (local.get $c))) (v128.load (i32.add (local.get $mean) (local.get $c))))))
                (v128.load (i32.add (local.get $offset) (local.get $c)))))
            (local.set $c (i32.add (local.get $c) (i32.const 16)))
            (br $next)))
        (block $over
          (loop $next
            (br_if $over (i32.ge_u (local.get $c) (local.get $end)))
            (f32.store (i32.add (local.get $dx) (local.get $c))
              (f32.add
                (f32.add
                  (f32.mul (f32.load (i32.add (local.get $scale) (local.get $c))) (f32.load (i32.add (local.get $dy) (local.get $c))))
                  (f32.mul (f32.load (i32.add (local.get $slope) (local.get $c)))
                    (f32.sub (f32.load (i32.add (local.get $x) (local.get $c))) (f32.load (i32.add (local.get $mean) (local.get $c))))))
                (f32.load (i32.add (local.get $offset) (local.get $c)))))
            (local.set $c (i32.add (local.get $c) (i32.const 4)))
            (br $next)))
        (local.set $x (i32.add (local.get $x) (local.get $end)))
        (local.set $dy (i32.add (local.get $dy) (local.get $end)))
        (local.set $dx (i32.add (local.get $dx) (local.get $end)))
        (br $row))))

  ;; Copies, or adds, a run of `columns` values of each row.
  (func (export "copyRuns")
    (param $rows i32) (param $columns i32) (param $from i32) (param $fromRow i32) (param $to i32) (param $toRow i32)
    (local $c i32) (local $end i32) (local $wide i32)
    (local.set $end (i32.shl (local.get $columns) (i32.const 2)))
    (local.set $wide (i32.and (local.get $end) (i32.const -16)))
    (block $done
      (loop $row
        (br_if $done (i32.eqz (local.get $rows)))
        (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
        (local.set $c (i32.const 0))
        (block $over
          (loop $next
            (br_if $over (i32.ge_u (local.get $c) (local.get $wide)))
            (v128.store (i32.add (local.get $to) (local.get $c)) (v128.load (i32.add (local.get $from) (local.get $c))))
            (local.set $c (i32.add (local.get $c) (i32.const 16)))
            (br $next)))
        (block $over
          (loop $next
            (br_if $over (i32.ge_u (local.get $c) (local.get $end)))
            (f32.store (i32.add (local.get $to) (local.get $c)) (f32.load (i32.add (local.get $from) (local.get $c))))
            (local.set $c (i32.add (local.get $c) (i32.const 4)))
            (br $next)))
        (local.set $from (i32.add (local.get $from) (local.get $fromRow)))
        (local.set $to (i32.add (local.get $to) (local.get $toRow)))
        (br $row))))

  (func (export "addRuns")
    (param $rows i32) (param $columns i32) (param $from i32) (param $fromRow i32) (param $to i32) (param $toRow i32)
    (local $c i32) (local $end i32) (local $wide i32)
    (local.set $end (i32.shl (local.get $columns) (i32.const 2)))
    (local.set $wide (i32.and (local.get $end) (i32.const -16)))
    (block $done
      (loop $row
        (br_if $done (i32.eqz (local.get $rows)))
        (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
        (local.set $c (i32.const 0))
        (block $over
          (loop $next
            (br_if $over (i32.ge_u (local.get $c) (local.get $wide)))
            (v128.store (i32.add (local.get $to) (local.get $c))
              (f32x4.add (v128.load (i32.add (local.get $to) (local.get $c))) (v128.load (i32.add (local.get $from) (local.get $c)))))
            (local.set $c (i32.add (local.get $c) (i32.const 16)))
            (br $next)))
        (block $over
          (loop $next
            (br_if $over (i32.ge_u (local.get $c) (local.get $end)))
            (f32.store (i32.add (local.get $to) (local.get $c))
              (f32.add (f32.load (i32.add (local.get $to) (local.get $c))) (f32.load (i32.add (local.get $from) (local.get $c)))))
            (local.set $c (i32.add (local.get $c) (i32.const 4)))
            (br $next)))
        (local.set $from (i32.add (local.get $from) (local.get $fromRow)))
        (local.set $to (i32.add (local.get $to) (local.get $toRow)))
        (br $row))))

  ;; Copies a matrix whose columns lie `fromColumn` apart into rows without gaps between their values.
  (func (export "copyStrided")
    (param $rows i32) (param $columns i32) (param $from i32) (param $fromRow i32) (param $fromColumn i32) (param $to i32) (param $toRow i32)
    (local $c i32) (local $source i32) (local $target i32)
    (block $done
      (loop $row
        (br_if $done (i32.eqz (local.get $rows)))
        (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
        (local.set $c (local.get $columns))
        (local.set $source (local.get $from))
        (local.set $target (local.get $to))
        (loop $next
          (f32.store (local.get $target) (f32.load (local.get $source)))
          (local.set $source (i32.add (local.get $source) (local.get $fromColumn)))
          (local.set $target (i32.add (local.get $target) (i32.const 4)))
          (br_if $next (local.tee $c (i32.sub (local.get $c) (i32.const 1)))))
        (local.set $from (i32.add (local.get $from) (local.get $fromRow)))
        (local.set $to (i32.add (local.get $to) (local.get $toRow)))
        (br $row))))

  ;; A step of Adam; `first` and `second` are what is missing of the betas to 1.
  (func (export "adam")
    (param $length i32) (param $first f32) (param $second f32) (param $decay f32) (param $rate f32) (param $epsilon f32)
    (param $w i32) (param $g i32) (param $m i32) (param $v i32) (param $toW i32) (param $toM i32) (param $toV i32)
    (local $i i32) (local $end i32) (local $wide i32)
    (local $gs v128) (local $ms v128) (local $vs v128) (local $gradient f32) (local $mean f32) (local $square f32)
    (local.set $end (i32.shl (local.get $length) (i32.const 2)))
    (local.set $wide (i32.and (local.get $end) (i32.const -16)))
    (block $over
      (loop $next
        (br_if $over (i32.ge_u (local.get $i) (local.get $wide)))
        (local.set $gs
          (f32x4.add (v128.load (i32.add (local.get $g) (local.get $i)))
            (f32x4.mul (f32x4.splat (local.get $decay)) (v128.load (i32.add (local.get $w) (local.get $i))))))
        (local.set $ms (v128.load (i32.add (local.get $m) (local.get $i))))
        (local.set $ms
          (f32x4.add (local.get $ms)
            (f32x4.mul (f32x4.splat (local.get $first)) (f32x4.sub (local.get $gs) (local.get $ms)))))
        (local.set $vs (v128.load (i32.add (local.get $v) (local.get $i))))
        (local.set $vs
          (f32x4.add (local.get $vs)
            (f32x4.mul (f32x4.splat (local.get $second))
              (f32x4.sub (f32x4.mul (local.get $gs) (local.get $gs)) (local.get $vs)))))
        (v128.store (i32.add (local.get $toM) (local.get $i)) (local.get $ms))
        (v128.store (i32.add (local.get $toV) (local.get $i)) (local.get $vs))
        (v128.store (i32.add (local.get $toW) (local.get $i))
          (f32x4.sub (v128.load (i32.add (local.get $w) (local.get $i)))
            (f32x4.div (f32x4.mul (f32x4.splat (local.get $rate)) (local.get $ms))
              (f32x4.add (f32x4.sqrt (local.get $vs)) (f32x4.splat (local.get $epsilon))))))
        (local.set $i (i32.add (local.get $i) (i32.const 16)))
        (br $next)))
    (block $over
      (loop $next
        (br_if $over (i32.ge_u (local.get $i) (local.get $end)))
        (local.set $gradient
          (f32.add (f32.load (i32.add (local.get $g) (local.get $i)))
            (f32.mul (local.get $decay) (f32.load (i32.add (local.get $w) (local.get $i))))))
        (local.set $mean (f32.load (i32.add (local.get $m) (local.get $i))))
        (local.set $mean
          (f32.add (local.get $mean) (f32.mul (local.get $first) (f32.sub (local.get $gradient) (local.get $mean)))))
        (local.set $square (f32.load (i32.add (local.get $v) (local.get $i))))
        (local.set $square
          (f32.add (local.get $square)
            (f32.mul (local.get $second)
              (f32.sub (f32.mul (local.get $gradient) (local.get $gradient)) (local.get $square)))))
        (f32.store (i32.add (local.get $toM) (local.get $i)) (local.get $mean))
        (f32.store (i32.add (local.get $toV) (local.get $i)) (local.get $square))
        (f32.store (i32.add (local.get $toW) (local.get $i))
          (f32.sub (f32.load (i32.add (local.get $w) (local.get $i)))
            (f32.div (f32.mul (local.get $rate) (local.get $mean))
              (f32.add (f32.sqrt (local.get $square)) (local.get $epsilon)))))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (br $next))))
)
