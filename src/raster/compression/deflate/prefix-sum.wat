;; Reverts horizontal differences (TIFF 6.0, section 14) in the memory of inflate.wat.
(module
  (import "kernel" "memory" (memory 1))

  ;; Adds to each pixel of a row all its predecessors, in place. Pixels have $size bytes, rows $length; there are $rows of
  ;; them.
  (func (export "sum") (param $size i32) (param $p i32) (param $length i32) (param $rows i32)
    (local $end i32) (local $stop i32) (local $pixels v128) (local $before v128)
    (block $done
      (loop $row
        (br_if $done (i32.eqz (local.get $rows)))
        (local.set $end (i32.add (local.get $p) (local.get $length)))
        (local.set $stop (i32.add (local.get $p) (i32.and (local.get $length) (i32.const -16))))
        ;; The last pixel so far, in every lane. Shifting lanes yields the sums of 1, 2, 4 and more neighbours.
        (local.set $before (v128.const i64x2 0 0))
        (block $whole
          (loop $next
            (br_if $whole (i32.ge_u (local.get $p) (local.get $stop)))
            (local.set $pixels (v128.load (local.get $p)))
            (if (i32.eq (local.get $size) (i32.const 2))
              (then
                (local.set $pixels
                  (i16x8.add
                    (local.get $pixels)
                    (i8x16.shuffle 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
                      (v128.const i64x2 0 0)
                      (local.get $pixels))))
                (local.set $pixels
                  (i16x8.add
                    (local.get $pixels)
                    (i8x16.shuffle 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
                      (v128.const i64x2 0 0)
                      (local.get $pixels))))
                (local.set $pixels
                  (i16x8.add
                    (local.get $pixels)
                    (i8x16.shuffle 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
                      (v128.const i64x2 0 0)
                      (local.get $pixels))))
                (local.set $pixels (i16x8.add (local.get $pixels) (local.get $before)))
                (local.set $before (i16x8.splat (i16x8.extract_lane_u 7 (local.get $pixels)))))
              (else
                (if (i32.eq (local.get $size) (i32.const 1))
                  (then
                    (local.set $pixels
                      (i8x16.add
                        (local.get $pixels)
                        (i8x16.shuffle 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
                          (v128.const i64x2 0 0)
                          (local.get $pixels))))
                    (local.set $pixels
                      (i8x16.add
                        (local.get $pixels)
                        (i8x16.shuffle 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
                          (v128.const i64x2 0 0)
                          (local.get $pixels))))
                    (local.set $pixels
                      (i8x16.add
                        (local.get $pixels)
                        (i8x16.shuffle 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
                          (v128.const i64x2 0 0)
                          (local.get $pixels))))
                    (local.set $pixels
                      (i8x16.add
                        (local.get $pixels)
                        (i8x16.shuffle 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
                          (v128.const i64x2 0 0)
                          (local.get $pixels))))
                    (local.set $pixels (i8x16.add (local.get $pixels) (local.get $before)))
                    (local.set $before (i8x16.splat (i8x16.extract_lane_u 15 (local.get $pixels)))))
                  (else
                    (local.set $pixels
                      (i32x4.add
                        (local.get $pixels)
                        (i8x16.shuffle 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
                          (v128.const i64x2 0 0)
                          (local.get $pixels))))
                    (local.set $pixels
                      (i32x4.add
                        (local.get $pixels)
                        (i8x16.shuffle 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
                          (v128.const i64x2 0 0)
                          (local.get $pixels))))
                    (local.set $pixels (i32x4.add (local.get $pixels) (local.get $before)))
                    (local.set $before (i32x4.splat (i32x4.extract_lane 3 (local.get $pixels))))))))
            (v128.store (local.get $p) (local.get $pixels))
            (local.set $p (i32.add (local.get $p) (i32.const 16)))
            (br $next)))
        (block $whole
          (loop $next
            (br_if $whole (i32.ge_u (local.get $p) (local.get $end)))
            (if (i32.eq (local.get $size) (i32.const 2))
              (then
                (local.set $before (i16x8.add (local.get $before) (v128.load16_splat (local.get $p))))
                (v128.store16_lane 0 (local.get $p) (local.get $before)))
              (else
                (if (i32.eq (local.get $size) (i32.const 1))
                  (then
                    (local.set $before (i8x16.add (local.get $before) (v128.load8_splat (local.get $p))))
                    (v128.store8_lane 0 (local.get $p) (local.get $before)))
                  (else
                    (local.set $before (i32x4.add (local.get $before) (v128.load32_splat (local.get $p))))
                    (v128.store32_lane 0 (local.get $p) (local.get $before))))))
            (local.set $p (i32.add (local.get $p) (local.get $size)))
            (br $next)))
        (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
        (br $row)))))
