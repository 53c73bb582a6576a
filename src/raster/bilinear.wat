;; The inner part of bilinear.ts for pixels of 8 and 16 bits, four pixels at a time; the numbers are the same to the last bit.
;; In here a pixel is a signed 16-bit number: unsigned ones are moved down by half their range, those of 8 bits are multiplied
;; by 256. Mean, weights and rounding do not mind.
(module
  (memory (export "memory") 1)

  ;; What `begin` says, the same for all squares of a band.
  (global $source (mut i32) (i32.const 0))    ;; address of pixel (0, 0) of the window, which need not be in memory itself
  (global $stride (mut i32) (i32.const 0))    ;; bytes from a row of the source to the next
  (global $outStride (mut i32) (i32.const 0))
  (global $bytes (mut i32) (i32.const 0))     ;; of a pixel: 1 or 2
  (global $shiftX (mut f64) (f64.const 0))    ;; subtracted from positions
  (global $shiftY (mut f64) (f64.const 0))
  (global $bias (mut i32) (i32.const 0))      ;; 0x8000 where pixels are unsigned, else 0
  (global $hole (mut i32) (i32.const 0))      ;; as a pixel in here
  (global $notHole (mut i32) (i32.const 0))   ;; written in its place; the hole itself where there is none
  (global $holes (mut i32) (i32.const 0))     ;; 1 where there is a hole, else 0

  (func (export "begin")
    (param $source i32) (param $stride i32) (param $outStride i32) (param $bytes i32)
    (param $shiftX f64) (param $shiftY f64) (param $bias i32) (param $hole i32) (param $notHole i32) (param $holes i32)
    (global.set $source (local.get $source))
    (global.set $stride (local.get $stride))
    (global.set $outStride (local.get $outStride))
    (global.set $bytes (local.get $bytes))
    (global.set $shiftX (local.get $shiftX))
    (global.set $shiftY (local.get $shiftY))
    (global.set $bias (local.get $bias))
    (global.set $hole (local.get $hole))
    (global.set $notHole (local.get $notHole))
    (global.set $holes (local.get $holes)))

  ;; One square of the control grid: `rows` x `count` pixels, at least 4 a row, to the address `out`; `inverse` is 1 / step, as
  ;; exact as a division because steps are powers of two. All positions lie
  ;; in the source. The nodes of the square are a b above c d. The result has a bit for each row that touched a hole, from the
  ;; lowest bit on: such a row is not right. `blank` then has a bit for those of them that touched nothing else.
  (global $blank (export "blank") (mut i32) (i32.const 0))
  (func (export "square")
    (param $out i32) (param $rows i32) (param $count i32) (param $inverse f64)
    (param $ax f64) (param $bx f64) (param $cx f64) (param $dx f64)
    (param $ay f64) (param $by f64) (param $cy f64) (param $dy f64)
    (result i32)
    (local $touched i32) (local $y i32) (local $i i32)
    (local $part f64) (local $startX f64) (local $startY f64) (local $left i32) (local $top i32)
    (local $stepX i32) (local $stepY i32)
    (local $firstX v128) (local $firstY v128) (local $next4X v128) (local $next4Y v128)
    (local $countX v128) (local $countY v128) (local $base v128) (local $stride v128) (local $at v128) (local $a i32)
    (local $upper v128) (local $lower v128) (local $weights v128) (local $upperHoles v128) (local $lowerHoles v128) (local $seen v128) (local $all v128) (local $mean v128)
    (local $hole v128) (local $notHole v128) (local $bias v128) (local $wide i32) (local $last i32) (local $below i32) (local $digits v128) (local $half v128)
    (local $one v128) (local $halfQuarter v128)
    (local.set $hole (i16x8.splat (global.get $hole)))
    (local.set $notHole (i16x8.splat (global.get $notHole)))
    (local.set $bias (i16x8.splat (global.get $bias)))
    (local.set $below (global.get $stride))
    (local.set $stride (i32x4.splat (local.get $below)))
    (local.set $wide (i32.eq (global.get $bytes) (i32.const 2)))
    ;; Means of 8-bit pixels are rounded to multiples of 256.
    (local.set $last (i32.sub (local.get $count) (i32.const 4)))
    (local.set $one (i32x4.splat (i32.const 0x4000)))
    (local.set $halfQuarter (i32x4.splat (i32.const 2048)))
    (local.set $digits (i16x8.splat (select (i32.const 0xffff) (i32.const 0xff00) (local.get $wide))))
    (local.set $half (i32x4.splat (select (i32.const 0x2000) (i32.const 0x200000) (local.get $wide))))
    (global.set $blank (i32.const 0))
    (loop $row
      (local.set $part (f64.mul (f64.convert_i32_s (local.get $y)) (local.get $inverse)))
      ;; The first position of the row, and the step to the next: as counts of 2 ** -20 of a pixel.
      (local.set $startX
        (f64.sub
          (f64.add (local.get $ax) (f64.mul (f64.sub (local.get $cx) (local.get $ax)) (local.get $part)))
          (global.get $shiftX)))
      (local.set $startY
        (f64.sub
          (f64.add (local.get $ay) (f64.mul (f64.sub (local.get $cy) (local.get $ay)) (local.get $part)))
          (global.get $shiftY)))
      (local.set $left (i32.trunc_f64_s (local.get $startX)))
      (local.set $top (i32.trunc_f64_s (local.get $startY)))
      (local.set $stepX
        (call $counts
          (f64.mul
            (f64.sub
              (f64.sub
                (f64.add (local.get $bx) (f64.mul (f64.sub (local.get $dx) (local.get $bx)) (local.get $part)))
                (global.get $shiftX))
              (local.get $startX))
            (local.get $inverse))))
      (local.set $stepY
        (call $counts
          (f64.mul
            (f64.sub
              (f64.sub
                (f64.add (local.get $by) (f64.mul (f64.sub (local.get $dy) (local.get $by)) (local.get $part)))
                (global.get $shiftY))
              (local.get $startY))
            (local.get $inverse))))
      ;; Half a unit of the weights is added, so that these are rounded.
      (local.set $firstX
        (i32x4.add
          (i32x4.splat
            (i32.add
              (i32.trunc_f64_s
                (f64.mul
                  (f64.sub (local.get $startX) (f64.convert_i32_s (local.get $left)))
                  (f64.const 1048576)))
              (i32.const 32)))
          (i32x4.mul (i32x4.splat (local.get $stepX)) (v128.const i32x4 0 1 2 3))))
      (local.set $firstY
        (i32x4.add
          (i32x4.splat
            (i32.add
              (i32.trunc_f64_s
                (f64.mul
                  (f64.sub (local.get $startY) (f64.convert_i32_s (local.get $top)))
                  (f64.const 1048576)))
              (i32.const 64)))
          (i32x4.mul (i32x4.splat (local.get $stepY)) (v128.const i32x4 0 1 2 3))))
      (local.set $base
        (i32x4.splat
          (i32.add
            (i32.add (global.get $source) (i32.mul (local.get $top) (global.get $stride)))
            (i32.mul (local.get $left) (global.get $bytes)))))
      (local.set $next4X (i32x4.splat (i32.mul (local.get $stepX) (i32.const 4))))
      (local.set $next4Y (i32x4.splat (i32.mul (local.get $stepY) (i32.const 4))))
      (local.set $countX (local.get $firstX))
      (local.set $countY (local.get $firstY))
      (local.set $seen (v128.const i64x2 0 0))
      (local.set $all (v128.const i64x2 -1 -1))
      (local.set $i (i32.const 0))
      (loop $four
        ;; Each 32 bits of `upper` become a pixel and its right neighbour; those of `lower`, the two below.
        (local.set $at
          (i32x4.add
            (local.get $base)
            (i32x4.mul (i32x4.shr_s (local.get $countY) (i32.const 20)) (local.get $stride))))
        (if (local.get $wide)
          (then
            (local.set $at
              (i32x4.add
                (local.get $at)
                (i32x4.shl (i32x4.shr_s (local.get $countX) (i32.const 20)) (i32.const 1))))
            (local.set $a (i32x4.extract_lane 0 (local.get $at)))
            (local.set $upper (v128.load32_zero (local.get $a)))
            (local.set $lower (v128.load32_zero (i32.add (local.get $a) (local.get $below))))
            (local.set $a (i32x4.extract_lane 1 (local.get $at)))
            (local.set $upper (v128.load32_lane 1 (local.get $a) (local.get $upper)))
            (local.set $lower (v128.load32_lane 1 (i32.add (local.get $a) (local.get $below)) (local.get $lower)))
            (local.set $a (i32x4.extract_lane 2 (local.get $at)))
            (local.set $upper (v128.load32_lane 2 (local.get $a) (local.get $upper)))
            (local.set $lower (v128.load32_lane 2 (i32.add (local.get $a) (local.get $below)) (local.get $lower)))
            (local.set $a (i32x4.extract_lane 3 (local.get $at)))
            (local.set $upper (v128.load32_lane 3 (local.get $a) (local.get $upper)))
            (local.set $lower (v128.load32_lane 3 (i32.add (local.get $a) (local.get $below)) (local.get $lower))))
          (else
            (local.set $at
              (i32x4.add (local.get $at) (i32x4.shr_s (local.get $countX) (i32.const 20))))
            (local.set $upper (v128.const i64x2 0 0))
            (local.set $lower (v128.const i64x2 0 0))
            (local.set $a (i32x4.extract_lane 0 (local.get $at)))
            (local.set $upper (v128.load16_lane 0 (local.get $a) (local.get $upper)))
            (local.set $lower (v128.load16_lane 0 (i32.add (local.get $a) (local.get $below)) (local.get $lower)))
            (local.set $a (i32x4.extract_lane 1 (local.get $at)))
            (local.set $upper (v128.load16_lane 1 (local.get $a) (local.get $upper)))
            (local.set $lower (v128.load16_lane 1 (i32.add (local.get $a) (local.get $below)) (local.get $lower)))
            (local.set $a (i32x4.extract_lane 2 (local.get $at)))
            (local.set $upper (v128.load16_lane 2 (local.get $a) (local.get $upper)))
            (local.set $lower (v128.load16_lane 2 (i32.add (local.get $a) (local.get $below)) (local.get $lower)))
            (local.set $a (i32x4.extract_lane 3 (local.get $at)))
            (local.set $upper (v128.load16_lane 3 (local.get $a) (local.get $upper)))
            (local.set $lower (v128.load16_lane 3 (i32.add (local.get $a) (local.get $below)) (local.get $lower)))
            (local.set $upper
              (i8x16.shuffle 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 (v128.const i64x2 0 0) (local.get $upper)))
            (local.set $lower
              (i8x16.shuffle 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 (v128.const i64x2 0 0) (local.get $lower)))))
        (local.set $upper (v128.xor (local.get $upper) (local.get $bias)))
        (local.set $lower (v128.xor (local.get $lower) (local.get $bias)))
        (local.set $upperHoles (i16x8.eq (local.get $upper) (local.get $hole)))
        (local.set $lowerHoles (i16x8.eq (local.get $lower) (local.get $hole)))
        (local.set $seen (v128.or (local.get $seen) (v128.or (local.get $upperHoles) (local.get $lowerHoles))))
        (local.set $all (v128.and (local.get $all) (v128.and (local.get $upperHoles) (local.get $lowerHoles))))
        ;; Along the rows with weights of 14 bits, then between them with 13 bits.
        (local.set $weights (i32x4.shr_u (i32x4.shl (local.get $countX) (i32.const 12)) (i32.const 18)))
        (local.set $weights
          (i32x4.add
            (i32x4.sub (i32x4.shl (local.get $weights) (i32.const 16)) (local.get $weights))
            (local.get $one)))
        (local.set $upper (i32x4.dot_i16x8_s (local.get $upper) (local.get $weights)))
        (local.set $lower (i32x4.dot_i16x8_s (local.get $lower) (local.get $weights)))
        (local.set $mean
          (i32x4.shr_s
            (i32x4.mul
              (i32x4.shr_s
                (i32x4.add (i32x4.sub (local.get $lower) (local.get $upper)) (local.get $halfQuarter))
                (i32.const 12))
              (i32x4.shr_u (i32x4.shl (local.get $countY) (i32.const 12)) (i32.const 19)))
            (i32.const 1)))
        (local.set $mean
          (i32x4.shr_s
            (i32x4.add (i32x4.add (local.get $upper) (local.get $mean)) (local.get $half))
            (i32.const 14)))
        (local.set $mean
          (v128.and (i16x8.narrow_i32x4_s (local.get $mean) (local.get $mean)) (local.get $digits)))
        (local.set $mean
          (v128.xor
            (v128.bitselect (local.get $notHole) (local.get $mean) (i16x8.eq (local.get $mean) (local.get $hole)))
            (local.get $bias)))
        (if (local.get $wide)
          (then
            (v128.store64_lane 0
              (i32.add (local.get $out) (i32.shl (local.get $i) (i32.const 1)))
              (local.get $mean)))
          (else
            (local.set $mean (i16x8.shr_u (local.get $mean) (i32.const 8)))
            (v128.store32_lane 0
              (i32.add (local.get $out) (local.get $i))
              (i8x16.narrow_i16x8_u (local.get $mean) (local.get $mean)))))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (local.set $countX (i32x4.add (local.get $countX) (local.get $next4X)))
        (local.set $countY (i32x4.add (local.get $countY) (local.get $next4Y)))
        (br_if $four (i32.le_s (local.get $i) (local.get $last)))
        ;; Where 1 to 3 pixels are left, the last four of the row, some for the second time.
        (if (i32.lt_s (local.get $i) (local.get $count))
          (then
            (local.set $i (local.get $last))
            (local.set $countX
              (i32x4.add (local.get $firstX) (i32x4.splat (i32.mul (local.get $stepX) (local.get $i)))))
            (local.set $countY
              (i32x4.add (local.get $firstY) (i32x4.splat (i32.mul (local.get $stepY) (local.get $i)))))
            (br $four))))
      (local.set $touched
        (i32.or
          (local.get $touched)
          (i32.shl (i32.and (v128.any_true (local.get $seen)) (global.get $holes)) (local.get $y))))
      (global.set $blank
        (i32.or
          (global.get $blank)
          (i32.shl (i32.and (i16x8.all_true (local.get $all)) (global.get $holes)) (local.get $y))))
      (local.set $out (i32.add (local.get $out) (global.get $outStride)))
      (local.set $y (i32.add (local.get $y) (i32.const 1)))
      (br_if $row (i32.lt_s (local.get $y) (local.get $rows))))
    (local.get $touched))

  (func $counts (param $pixels f64) (result i32)
    (i32.trunc_f64_s
      (f64.floor (f64.add (f64.mul (local.get $pixels) (f64.const 1048576)) (f64.const 0.5))))))
