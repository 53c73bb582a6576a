;; Bilinear interpolation for pixels of 8 and 16 bits, eight pixels at a time. Its means differ from those of bilinear.ts by at
;; most one unit and 2 ** -13 of the difference between neighbouring pixels. Internally a pixel is a signed 16-bit number:
;; unsigned pixels are moved down by half their range, and those of 8 bits are multiplied by 256. This does not affect mean,
;; weights and rounding.
(module
  (memory (export "memory") 1)

  ;; Set by `begin`, the same for all squares of a band.
  (global $source (mut i32) (i32.const 0))    ;; address of pixel (0, 0) of the window, which need not be in memory itself
  (global $stride (mut i32) (i32.const 0))    ;; bytes from a row of the source to the next
  (global $outStride (mut i32) (i32.const 0))
  (global $bytes (mut i32) (i32.const 0))     ;; bytes of a pixel: 1 or 2
  (global $bias (mut v128) (v128.const i64x2 0 0))  ;; 0x8000 where pixels are unsigned, else 0
  (global $hole (mut v128) (v128.const i64x2 0 0))  ;; as a pixel in here
  (global $aside (mut v128) (v128.const i64x2 0 0)) ;; added to a mean that happens to equal the hole; 0 where there is no hole
  (global $holes (mut i32) (i32.const 0))           ;; 1 where there is a hole, else 0
  (global $half (mut v128) (v128.const i64x2 0 0))  ;; half of the last digit of a mean, as a count of 2 ** -15
  (global $digits (mut v128) (v128.const i64x2 0 0)) ;; digits of a mean; those of 8-bit pixels are multiples of 256
  ;; Byte indexes of a pixel and its right neighbour, for four pixels; 0x80 and more select a zero.
  (global $pair (mut v128) (v128.const i64x2 0 0))
  (global $second (mut v128) (v128.const i64x2 0 0)) ;; all ones where a pixel has a second byte, else 0

  (func (export "begin")
    (param $source i32) (param $stride i32) (param $outStride i32) (param $bytes i32)
    (param $bias i32) (param $hole i32) (param $notHole i32) (param $holes i32)
    (local $wide i32)
    (local.set $wide (i32.eq (local.get $bytes) (i32.const 2)))
    (global.set $source (local.get $source))
    (global.set $stride (local.get $stride))
    (global.set $outStride (local.get $outStride))
    (global.set $bytes (local.get $bytes))
    (global.set $bias (i16x8.splat (local.get $bias)))
    (global.set $hole (i16x8.splat (local.get $hole)))
    (global.set $aside (i16x8.splat (i32.sub (local.get $notHole) (local.get $hole))))
    (global.set $holes (local.get $holes))
    (global.set $half (i32x4.splat (select (i32.const 0x4000) (i32.const 0x400000) (local.get $wide))))
    (global.set $digits (i16x8.splat (select (i32.const 0xffff) (i32.const 0xff00) (local.get $wide))))
    (global.set $pair (i32x4.splat (select (i32.const 0x03020100) (i32.const 0x01800080) (local.get $wide))))
    (global.set $second (i32x4.splat (i32.sub (i32.const 0) (local.get $wide)))))

  ;; Interpolates one square of the control grid: `rows` x `count` pixels, at least 8 in a row, to the address `out`; the step
  ;; of the grid is 2 ** logStep. All positions lie in the source. The corners of the square are a b above c d, in integers of
  ;; 2 ** -20 source pixels. The result has a bit for each row that touched a pixel without data, from the lowest bit on: such
  ;; a row is invalid. `blank` then has a bit for those rows that touched no pixel with data.
  (global $blank (export "blank") (mut i32) (i32.const 0))
  (func (export "square")
    (param $out i32) (param $rows i32) (param $count i32) (param $logStep i32)
    (param $ax f64) (param $bx f64) (param $cx f64) (param $dx f64)
    (param $ay f64) (param $by f64) (param $cy f64) (param $dy f64)
    (result i32)
    (local $touched i32) (local $row i32) (local $left i32) (local $to i32)
    (local $firstX i64) (local $firstY i64) (local $acrossX i64) (local $acrossY i64)
    (local $downX i64) (local $downY i64) (local $turnX i64) (local $turnY i64) (local $once i64) (local $twice i64)
    ;; State of the current pixels: x counts 2 ** -24 source pixels, so that its bytes can be selected, and y 2 ** -32. Names
    ;; with 4 refer to the second four of eight pixels.
    (local $x i64) (local $y i64) (local $x4 i64) (local $y4 i64) (local $stepX i64) (local $stepY i64) (local $limit i64)
    (local $lanesX v128) (local $lanesY v128) (local $next4Y v128)
    (local $partX v128) (local $partX4 v128) (local $partY v128) (local $partY4 v128)
    (local $at i32) (local $at4 i32) (local $again i32) (local $offsets v128) (local $offsets4 v128)
    (local $upper v128) (local $upper4 v128) (local $lower v128) (local $lower4 v128) (local $seen v128)
    (local $weights v128) (local $weights4 v128) (local $mean v128) (local $mean4 v128)
    ;; Local copies of globals: V8 loads a global again for every use.
    (local $bytes i32) (local $stride i32)
    (local $bias v128) (local $hole v128) (local $half v128) (local $pair v128) (local $second v128)
    (local.set $bytes (global.get $bytes))
    (local.set $stride (global.get $stride))
    (local.set $bias (global.get $bias))
    (local.set $hole (global.get $hole))
    (local.set $half (global.get $half))
    (local.set $pair (global.get $pair))
    (local.set $second (global.get $second))
    (global.set $blank (i32.const 0))
    ;; `first`: the position of a row's first pixel; `across`: the distance to the right side of the square. Both are
    ;; multiplied by the step of the grid, so that `down` and `turn`, their changes from row to row, are integers.
    (local.set $once (i64.extend_i32_s (local.get $logStep)))
    (local.set $twice (i64.shl (local.get $once) (i64.const 1)))
    (local.set $firstX (i64.trunc_f64_s (local.get $ax)))
    (local.set $firstY (i64.trunc_f64_s (local.get $ay)))
    (local.set $downX (i64.sub (i64.trunc_f64_s (local.get $cx)) (local.get $firstX)))
    (local.set $downY (i64.sub (i64.trunc_f64_s (local.get $cy)) (local.get $firstY)))
    (local.set $acrossX (i64.sub (i64.trunc_f64_s (local.get $bx)) (local.get $firstX)))
    (local.set $acrossY (i64.sub (i64.trunc_f64_s (local.get $by)) (local.get $firstY)))
    (local.set $turnX
      (i64.sub (i64.trunc_f64_s (f64.sub (local.get $dx) (local.get $cx))) (local.get $acrossX)))
    (local.set $turnY
      (i64.sub (i64.trunc_f64_s (f64.sub (local.get $dy) (local.get $cy))) (local.get $acrossY)))
    ;; Adds half a unit of the weights, so that these are rounded, and half a unit of the steps.
    (local.set $firstX (i64.shl (i64.add (local.get $firstX) (i64.const 32)) (local.get $once)))
    (local.set $firstY (i64.shl (i64.add (local.get $firstY) (i64.const 64)) (local.get $once)))
    (local.set $acrossX
      (i64.add
        (i64.shl (local.get $acrossX) (local.get $once))
        (i64.shr_u (i64.shl (i64.const 1) (local.get $twice)) (i64.const 1))))
    (local.set $acrossY
      (i64.add
        (i64.shl (local.get $acrossY) (local.get $once))
        (i64.shr_u (i64.shl (i64.const 1) (local.get $twice)) (i64.const 1))))
    (loop $nextRow
      (local.set $x (i64.shl (i64.shr_s (local.get $firstX) (local.get $once)) (i64.const 4)))
      (local.set $y (i64.shl (i64.shr_s (local.get $firstY) (local.get $once)) (i64.const 12)))
      (local.set $stepX (i64.shl (i64.shr_s (local.get $acrossX) (local.get $twice)) (i64.const 4)))
      (local.set $stepY (i64.shl (i64.shr_s (local.get $acrossY) (local.get $twice)) (i64.const 12)))
      (local.set $lanesX
        (i32x4.mul (i32x4.splat (i32.wrap_i64 (local.get $stepX))) (v128.const i32x4 0 1 2 3)))
      (local.set $lanesY
        (i32x4.mul (i32x4.splat (i32.wrap_i64 (local.get $stepY))) (v128.const i32x4 0 1 2 3)))
      (local.set $next4Y (i32x4.shl (i32x4.splat (i32.wrap_i64 (local.get $stepY))) (i32.const 2)))
      ;; 0 for steps of more than 2 pixels, or backwards: pairs of four pixels may then not lie among the eight from the first.
      (local.set $limit
        (select (i64.const 0x100000000) (i64.const 0) (i64.le_u (local.get $stepX) (i64.const 0x2000000))))
      (local.set $seen (v128.const i64x2 0 0))
      (local.set $to (local.get $out))
      (local.set $left (local.get $count))
      (loop $eight
        (local.set $x4 (i64.add (local.get $x) (i64.shl (local.get $stepX) (i64.const 2))))
        (local.set $partX
          (i32x4.add
            (i32x4.splat (i32.and (i32.wrap_i64 (local.get $x)) (i32.const 0xffffff)))
            (local.get $lanesX)))
        (local.set $partX4
          (i32x4.add
            (i32x4.splat (i32.and (i32.wrap_i64 (local.get $x4)) (i32.const 0xffffff)))
            (local.get $lanesX)))
        ;; Byte indexes, among 16 from the first pixel on, of the pairs of four pixels: the integer part of a position is its
        ;; highest byte.
        (local.set $offsets
          (i8x16.swizzle (local.get $partX) (v128.const i8x16 3 3 3 3 7 7 7 7 11 11 11 11 15 15 15 15)))
        (local.set $offsets
          (i8x16.add
            (i8x16.add (local.get $offsets) (local.get $pair))
            (v128.and (local.get $offsets) (local.get $second))))
        (local.set $offsets4
          (i8x16.swizzle (local.get $partX4) (v128.const i8x16 3 3 3 3 7 7 7 7 11 11 11 11 15 15 15 15)))
        (local.set $offsets4
          (i8x16.add
            (i8x16.add (local.get $offsets4) (local.get $pair))
            (v128.and (local.get $offsets4) (local.get $second))))
        ;; All eight lie between the same two rows, and close enough.
        (if
          (i64.lt_u
            (i64.xor (local.get $y) (i64.add (local.get $y) (i64.mul (local.get $stepY) (i64.const 7))))
            (local.get $limit))
          (then
            (local.set $at
              (i32.add
                (global.get $source)
                (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $y) (i64.const 32))) (local.get $stride))))
            (local.set $at4
              (i32.add
                (local.get $at)
                (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $x4) (i64.const 24))) (local.get $bytes))))
            (local.set $at
              (i32.add
                (local.get $at)
                (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $x) (i64.const 24))) (local.get $bytes))))
            (local.set $upper (i8x16.swizzle (v128.load (local.get $at)) (local.get $offsets)))
            (local.set $lower
              (i8x16.swizzle (v128.load (i32.add (local.get $at) (local.get $stride))) (local.get $offsets)))
            (local.set $upper4 (i8x16.swizzle (v128.load (local.get $at4)) (local.get $offsets4)))
            (local.set $lower4
              (i8x16.swizzle (v128.load (i32.add (local.get $at4) (local.get $stride))) (local.get $offsets4))))
          (else
            ;; Pixel by pixel: the first four, then the second four.
            (local.set $x4 (local.get $x))
            (local.set $y4 (local.get $y))
            (local.set $offsets
              (i8x16.add (local.get $pair) (v128.const i8x16 0 0 0 0 4 4 4 4 8 8 8 8 12 12 12 12)))
            (local.set $again (i32.const 1))
            (loop $four
              (local.set $upper (local.get $upper4))
              (local.set $lower (local.get $lower4))
              (local.set $at
                (i32.add
                  (i32.add
                    (global.get $source)
                    (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $y4) (i64.const 32))) (local.get $stride)))
                  (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $x4) (i64.const 24))) (local.get $bytes))))
              (local.set $upper4 (v128.load32_zero (local.get $at)))
              (local.set $lower4 (v128.load32_zero (i32.add (local.get $at) (local.get $stride))))
              (local.set $x4 (i64.add (local.get $x4) (local.get $stepX)))
              (local.set $y4 (i64.add (local.get $y4) (local.get $stepY)))
              (local.set $at
                (i32.add
                  (i32.add
                    (global.get $source)
                    (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $y4) (i64.const 32))) (local.get $stride)))
                  (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $x4) (i64.const 24))) (local.get $bytes))))
              (local.set $upper4 (v128.load32_lane 1 (local.get $at) (local.get $upper4)))
              (local.set $lower4 (v128.load32_lane 1 (i32.add (local.get $at) (local.get $stride)) (local.get $lower4)))
              (local.set $x4 (i64.add (local.get $x4) (local.get $stepX)))
              (local.set $y4 (i64.add (local.get $y4) (local.get $stepY)))
              (local.set $at
                (i32.add
                  (i32.add
                    (global.get $source)
                    (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $y4) (i64.const 32))) (local.get $stride)))
                  (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $x4) (i64.const 24))) (local.get $bytes))))
              (local.set $upper4 (v128.load32_lane 2 (local.get $at) (local.get $upper4)))
              (local.set $lower4 (v128.load32_lane 2 (i32.add (local.get $at) (local.get $stride)) (local.get $lower4)))
              (local.set $x4 (i64.add (local.get $x4) (local.get $stepX)))
              (local.set $y4 (i64.add (local.get $y4) (local.get $stepY)))
              (local.set $at
                (i32.add
                  (i32.add
                    (global.get $source)
                    (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $y4) (i64.const 32))) (local.get $stride)))
                  (i32.mul (i32.wrap_i64 (i64.shr_s (local.get $x4) (i64.const 24))) (local.get $bytes))))
              (local.set $upper4 (v128.load32_lane 3 (local.get $at) (local.get $upper4)))
              (local.set $lower4 (v128.load32_lane 3 (i32.add (local.get $at) (local.get $stride)) (local.get $lower4)))
              (local.set $x4 (i64.add (local.get $x4) (local.get $stepX)))
              (local.set $y4 (i64.add (local.get $y4) (local.get $stepY)))
              (local.set $upper4 (i8x16.swizzle (local.get $upper4) (local.get $offsets)))
              (local.set $lower4 (i8x16.swizzle (local.get $lower4) (local.get $offsets)))
              (br_if $four (i32.eqz (local.tee $again (i32.sub (local.get $again) (i32.const 1))))))))
        (local.set $upper (v128.xor (local.get $upper) (local.get $bias)))
        (local.set $lower (v128.xor (local.get $lower) (local.get $bias)))
        (local.set $upper4 (v128.xor (local.get $upper4) (local.get $bias)))
        (local.set $lower4 (v128.xor (local.get $lower4) (local.get $bias)))
        (local.set $seen
          (i16x8.add
            (local.get $seen)
            (i16x8.add
              (i16x8.add
                (i16x8.eq (local.get $upper) (local.get $hole))
                (i16x8.eq (local.get $lower) (local.get $hole)))
              (i16x8.add
                (i16x8.eq (local.get $upper4) (local.get $hole))
                (i16x8.eq (local.get $lower4) (local.get $hole))))))
        ;; Along the rows, with weights of 14 bits, doubled and negated, because in 16 bits only -2 ** 15 can stand for 1: w -
        ;; 1 for the left pixel and -w for the right one.
        (local.set $weights
          (v128.or
            (i16x8.mul
              (i16x8.shr_u
                (i8x16.swizzle (local.get $partX) (v128.const i8x16 1 2 1 2 5 6 5 6 9 10 9 10 13 14 13 14))
                (i32.const 2))
              (v128.const i16x8 2 -2 2 -2 2 -2 2 -2))
            (v128.const i16x8 0x8000 0 0x8000 0 0x8000 0 0x8000 0)))
        (local.set $upper (i32x4.dot_i16x8_s (local.get $upper) (local.get $weights)))
        (local.set $lower (i32x4.dot_i16x8_s (local.get $lower) (local.get $weights)))
        (local.set $weights4
          (v128.or
            (i16x8.mul
              (i16x8.shr_u
                (i8x16.swizzle (local.get $partX4) (v128.const i8x16 1 2 1 2 5 6 5 6 9 10 9 10 13 14 13 14))
                (i32.const 2))
              (v128.const i16x8 2 -2 2 -2 2 -2 2 -2))
            (v128.const i16x8 0x8000 0 0x8000 0 0x8000 0 0x8000 0)))
        (local.set $upper4 (i32x4.dot_i16x8_s (local.get $upper4) (local.get $weights4)))
        (local.set $lower4 (i32x4.dot_i16x8_s (local.get $lower4) (local.get $weights4)))
        ;; Between the rows, with weights of 13 bits.
        (local.set $partY (i32x4.add (i32x4.splat (i32.wrap_i64 (local.get $y))) (local.get $lanesY)))
        (local.set $partY4 (i32x4.add (local.get $partY) (local.get $next4Y)))
        (local.set $mean
          (i32x4.add
            (i32x4.sub
              (i32x4.mul
                (i32x4.shr_s
                  (i32x4.add (i32x4.sub (local.get $upper) (local.get $lower)) (v128.const i32x4 4096 4096 4096 4096))
                  (i32.const 13))
                (i32x4.shr_u (local.get $partY) (i32.const 19)))
              (local.get $upper))
            (local.get $half)))
        (local.set $mean4
          (i32x4.add
            (i32x4.sub
              (i32x4.mul
                (i32x4.shr_s
                  (i32x4.add (i32x4.sub (local.get $upper4) (local.get $lower4)) (v128.const i32x4 4096 4096 4096 4096))
                  (i32.const 13))
                (i32x4.shr_u (local.get $partY4) (i32.const 19)))
              (local.get $upper4))
            (local.get $half)))
        (local.set $mean
          (v128.and
            (i16x8.narrow_i32x4_s
              (i32x4.shr_s (local.get $mean) (i32.const 15))
              (i32x4.shr_s (local.get $mean4) (i32.const 15)))
            (global.get $digits)))
        (local.set $mean
          (v128.xor
            (i16x8.add
              (local.get $mean)
              (v128.and (i16x8.eq (local.get $mean) (local.get $hole)) (global.get $aside)))
            (local.get $bias)))
        (if (i32.eq (local.get $bytes) (i32.const 2))
          (then (v128.store (local.get $to) (local.get $mean)))
          (else
            (local.set $mean (i16x8.shr_u (local.get $mean) (i32.const 8)))
            (v128.store64_lane 0 (local.get $to) (i8x16.narrow_i16x8_u (local.get $mean) (local.get $mean)))))
        (local.set $to (i32.add (local.get $to) (i32.shl (local.get $bytes) (i32.const 3))))
        (local.set $x (i64.add (local.get $x) (i64.shl (local.get $stepX) (i64.const 3))))
        (local.set $y (i64.add (local.get $y) (i64.shl (local.get $stepY) (i64.const 3))))
        (local.set $left (i32.sub (local.get $left) (i32.const 8)))
        (br_if $eight (i32.ge_s (local.get $left) (i32.const 8)))
        ;; If 1 to 7 pixels are left, steps back, so that the last eight of the row come next, some of them again.
        (if (i32.gt_s (local.get $left) (i32.const 0))
          (then
            (local.set $left (i32.sub (local.get $left) (i32.const 8)))
            (local.set $to (i32.add (local.get $to) (i32.mul (local.get $left) (local.get $bytes))))
            (local.set $x (i64.add (local.get $x) (i64.mul (local.get $stepX) (i64.extend_i32_s (local.get $left)))))
            (local.set $y (i64.add (local.get $y) (i64.mul (local.get $stepY) (i64.extend_i32_s (local.get $left)))))
            (local.set $left (i32.const 8))
            (br $eight))))
      (if (v128.any_true (local.get $seen))
        (then
          (local.set $touched (i32.or (local.get $touched) (i32.shl (global.get $holes) (local.get $row))))
          (global.set $blank
            (i32.or
              (global.get $blank)
              (i32.shl
                (i16x8.all_true
                  (i16x8.eq
                    (local.get $seen)
                    ;; Each lane counts down, four times for eight pixels.
                    (i16x8.splat (i32.mul (i32.const -4) (i32.shr_u (i32.add (local.get $count) (i32.const 7)) (i32.const 3))))))
                (local.get $row))))))
      (local.set $firstX (i64.add (local.get $firstX) (local.get $downX)))
      (local.set $firstY (i64.add (local.get $firstY) (local.get $downY)))
      (local.set $acrossX (i64.add (local.get $acrossX) (local.get $turnX)))
      (local.set $acrossY (i64.add (local.get $acrossY) (local.get $turnY)))
      (local.set $out (i32.add (local.get $out) (global.get $outStride)))
      (local.set $row (i32.add (local.get $row) (i32.const 1)))
      (br_if $nextRow (i32.lt_s (local.get $row) (local.get $rows))))
    (local.get $touched)))
