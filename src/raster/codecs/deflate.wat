;; The inner loops of deflate.ts over the bytes of a block of DEFLATE with dynamic Huffman codes (RFC 1951, 3.2.7).
;;
;; Bytes are counted and written in pairs. A table of 65536 words, indexed by the pair as a little-endian number, first holds
;; the count of each pair, then the codes of its two bytes, one after the other. For differences of 16-bit pixels nearly all of
;; it stays unused, as their upper byte is mostly 0 or 255: the table then needs no more of the cache than a table of bytes.
;; The only matches are runs of zeros, at distance 1.
;;
;; An "entry" is a code in a table: its bits times 64, the first to be sent lowest, plus the number of bits. A code has at most
;; 13 bits, so the entry of a pair fits into 32. Numbers of bits are added up as complete entries: only their lowest six bits
;; count, because a shift uses no others.
(module
  (memory (export "memory") 18)
  ;; Addresses. Those of tables are repeated as offsets below.
  (global $pairs i32 (i32.const 0))                            ;; 65536 words: counts, then entries
  (global $runs (export "runs") i32 (i32.const 0x40000))       ;; 259 words by length, 3 to 258: counts, then entries
  (global $bytes (export "bytes") i32 (i32.const 0x40800))     ;; 256 words: counts, then entries
  (global $powers (export "powers") i32 (i32.const 0x40c00))   ;; 256 words: 2 ** (6 + bits of the code) of each byte
  (global $seconds i32 (i32.const 0x41000))                    ;; 256 words: in how many pairs each byte is the second
  (global $input (export "input") i32 (i32.const 0x42000))     ;; 256 KiB
  (global $output (export "output") i32 (i32.const 0x82040))   ;; all the rest

  ;; No match may reach back before the input. This is ensured by a byte other than 0 there.
  (data (i32.const 0x41fff) "\01")

  ;; Address of the next byte, and pending bits: $held bits, less than 8, the first of them lowest.
  (global $out (export "out") (mut i32) (i32.const 0))
  (global $bits (mut i64) (i64.const 0))
  (global $held (mut i64) (i64.const 0))

  ;; Subtracts from each pixel of the input its predecessor, from the last pixel to the first. Pixels have $size bytes, and
  ;; $length in total, a multiple of 16. The first pixel becomes undefined.
  (func (export "difference") (param $size i32) (param $length i32)
    (local $p i32) (local $pixels v128) (local $before v128)
    (local.set $p (i32.add (global.get $input) (local.get $length)))
    (block $done
      (loop $next
        (br_if $done (i32.le_u (local.get $p) (global.get $input)))
        (local.set $p (i32.sub (local.get $p) (i32.const 16)))
        (local.set $pixels (v128.load (local.get $p)))
        (local.set $before (v128.load (i32.sub (local.get $p) (local.get $size))))
        (if (i32.eq (local.get $size) (i32.const 2))
          (then (v128.store (local.get $p) (i16x8.sub (local.get $pixels) (local.get $before))))
          (else
            (if (i32.eq (local.get $size) (i32.const 1))
              (then (v128.store (local.get $p) (i8x16.sub (local.get $pixels) (local.get $before))))
              (else (v128.store (local.get $p) (i32x4.sub (local.get $pixels) (local.get $before)))))))
        (br $next))))

  ;; Counts the pairs of $length bytes of input and runs of zeros, then derives the counts of bytes. Returns how many bytes at
  ;; the end, less than 8, are not counted.
  (func (export "count") (param $length i32) (result i32)
    (local $p i32) (local $end i32) (local $word i64) (local $zeros i32) (local $stop i32) (local $at i32)
    (call $clear)
    (local.set $p (global.get $input))
    (local.set $end (i32.add (local.get $p) (local.get $length)))
    (block $done
      (loop $next
        (br_if $done (i32.gt_u (i32.add (local.get $p) (i32.const 8)) (local.get $end)))
        (local.set $word (i64.load (local.get $p)))
        (if (i64.eqz (i64.shr_u (local.get $word) (i64.const 32)))
          (then
            (local.set $zeros (call $zerosIn (local.get $p) (local.get $word)))
            (local.set $stop (call $zerosUpTo (local.get $zeros) (local.get $end)))
            (if (i32.ge_u (i32.sub (local.get $stop) (local.get $zeros)) (i32.const 8))
              (then
                (call $walk (local.get $p) (local.get $zeros) (local.get $stop) (i32.const 0))
                (local.set $p (local.get $stop))
                (br $next)))))
        (local.set $at (i32.and (i32.wrap_i64 (i64.shl (local.get $word) (i64.const 2))) (i32.const 0x3fffc)))
        (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (i32.const 1)))
        (local.set $at (i32.and (i32.wrap_i64 (i64.shr_u (local.get $word) (i64.const 14))) (i32.const 0x3fffc)))
        (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (i32.const 1)))
        (local.set $at (i32.and (i32.wrap_i64 (i64.shr_u (local.get $word) (i64.const 30))) (i32.const 0x3fffc)))
        (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (i32.const 1)))
        (local.set $at (i32.and (i32.wrap_i64 (i64.shr_u (local.get $word) (i64.const 46))) (i32.const 0x3fffc)))
        (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (i32.const 1)))
        (local.set $p (i32.add (local.get $p) (i32.const 8)))
        (br $next)))
    (call $sum)
    (i32.sub (local.get $end) (local.get $p)))

  ;; Writes the same bytes and runs by their entries, in the same steps.
  (func (export "emit") (param $length i32)
    (local $p i32) (local $end i32) (local $word i64) (local $zeros i32) (local $stop i32)
    (local $out i32) (local $bits i64) (local $held i64) (local $entry i64)
    (local.set $p (global.get $input))
    (local.set $end (i32.add (local.get $p) (local.get $length)))
    (local.set $out (global.get $out))
    (local.set $bits (global.get $bits))
    (local.set $held (global.get $held))
    (block $done
      (loop $next
        (br_if $done (i32.gt_u (i32.add (local.get $p) (i32.const 8)) (local.get $end)))
        (local.set $word (i64.load (local.get $p)))
        (if (i64.eqz (i64.shr_u (local.get $word) (i64.const 32)))
          (then
            (local.set $zeros (call $zerosIn (local.get $p) (local.get $word)))
            (local.set $stop (call $zerosUpTo (local.get $zeros) (local.get $end)))
            (if (i32.ge_u (i32.sub (local.get $stop) (local.get $zeros)) (i32.const 8))
              (then
                (global.set $out (local.get $out))
                (global.set $bits (local.get $bits))
                (global.set $held (local.get $held))
                (call $walk (local.get $p) (local.get $zeros) (local.get $stop) (i32.const 1))
                (local.set $out (global.get $out))
                (local.set $bits (global.get $bits))
                (local.set $held (global.get $held))
                (local.set $p (local.get $stop))
                (br $next)))))
        ;; Two pairs add at most 2 x 26 bits, less than 64. All pending bits are stored, but only complete bytes advance $out.
        (local.set $entry
          (i64.load32_u (i32.and (i32.wrap_i64 (i64.shl (local.get $word) (i64.const 2))) (i32.const 0x3fffc))))
        (local.set $bits
          (i64.or (local.get $bits) (i64.shl (i64.shr_u (local.get $entry) (i64.const 6)) (local.get $held))))
        (local.set $held (i64.add (local.get $held) (local.get $entry)))
        (local.set $entry
          (i64.load32_u (i32.and (i32.wrap_i64 (i64.shr_u (local.get $word) (i64.const 14))) (i32.const 0x3fffc))))
        (local.set $bits
          (i64.or (local.get $bits) (i64.shl (i64.shr_u (local.get $entry) (i64.const 6)) (local.get $held))))
        (local.set $held (i64.and (i64.add (local.get $held) (local.get $entry)) (i64.const 63)))
        (i64.store (local.get $out) (local.get $bits))
        (local.set $out (i32.add (local.get $out) (i32.wrap_i64 (i64.shr_u (local.get $held) (i64.const 3)))))
        (local.set $bits (i64.shr_u (local.get $bits) (i64.and (local.get $held) (i64.const 56))))
        (local.set $held (i64.and (local.get $held) (i64.const 7)))
        (local.set $entry
          (i64.load32_u (i32.and (i32.wrap_i64 (i64.shr_u (local.get $word) (i64.const 30))) (i32.const 0x3fffc))))
        (local.set $bits
          (i64.or (local.get $bits) (i64.shl (i64.shr_u (local.get $entry) (i64.const 6)) (local.get $held))))
        (local.set $held (i64.add (local.get $held) (local.get $entry)))
        (local.set $entry
          (i64.load32_u (i32.and (i32.wrap_i64 (i64.shr_u (local.get $word) (i64.const 46))) (i32.const 0x3fffc))))
        (local.set $bits
          (i64.or (local.get $bits) (i64.shl (i64.shr_u (local.get $entry) (i64.const 6)) (local.get $held))))
        (local.set $held (i64.and (i64.add (local.get $held) (local.get $entry)) (i64.const 63)))
        (i64.store (local.get $out) (local.get $bits))
        (local.set $out (i32.add (local.get $out) (i32.wrap_i64 (i64.shr_u (local.get $held) (i64.const 3)))))
        (local.set $bits (i64.shr_u (local.get $bits) (i64.and (local.get $held) (i64.const 56))))
        (local.set $held (i64.and (local.get $held) (i64.const 7)))
        (local.set $p (i32.add (local.get $p) (i32.const 8)))
        (br $next)))
    (global.set $out (local.get $out))
    (global.set $bits (local.get $bits))
    (global.set $held (local.get $held)))

  ;; The start of the zeros at the end of the eight bytes $word at $p, at an even distance from $p.
  (func $zerosIn (param $p i32) (param $word i64) (result i32)
    (i32.sub
      (i32.add (local.get $p) (i32.const 8))
      (i32.shl (i32.wrap_i64 (i64.shr_u (i64.clz (local.get $word)) (i64.const 4))) (i32.const 1))))

  ;; The end of the zeros from $p on, at an even distance from it. Checks only complete words before $end.
  (func $zerosUpTo (param $p i32) (param $end i32) (result i32)
    (local $word i64)
    (loop $next
      (if (i32.gt_u (i32.add (local.get $p) (i32.const 8)) (local.get $end)) (then (return (local.get $p))))
      (local.set $word (i64.load (local.get $p)))
      (if (i64.eqz (local.get $word))
        (then
          (local.set $p (i32.add (local.get $p) (i32.const 8)))
          (br $next))))
    (i32.add
      (local.get $p)
      (i32.shl (i32.wrap_i64 (i64.shr_u (i64.ctz (local.get $word)) (i64.const 4))) (i32.const 1))))

  ;; Counts (0) or writes (1) the pairs from $p on, then a run of zeros from $zeros to $stop, in pieces of up to 258 bytes. A
  ;; match copies the byte before it: if that is not zero, the run starts with a pair; two zeros at its end are a pair, too.
  (func $walk (param $p i32) (param $zeros i32) (param $stop i32) (param $writes i32)
    (local $length i32)
    (if (i32.load8_u (i32.sub (local.get $zeros) (i32.const 1)))
      (then (local.set $zeros (i32.add (local.get $zeros) (i32.const 2)))))
    (loop $next
      (if (i32.lt_u (local.get $p) (local.get $zeros))
        (then
          (call $take (i32.shl (i32.load16_u (local.get $p)) (i32.const 2)) (local.get $writes))
          (local.set $p (i32.add (local.get $p) (i32.const 2)))
          (br $next)))
      (if (i32.lt_u (local.get $p) (local.get $stop))
        (then
          (local.set $length (i32.sub (local.get $stop) (local.get $p)))
          (if (i32.gt_u (local.get $length) (i32.const 258)) (then (local.set $length (i32.const 258))))
          (call $take
            (select
              (global.get $pairs)
              (i32.add (global.get $runs) (i32.shl (local.get $length) (i32.const 2)))
              (i32.eq (local.get $length) (i32.const 2)))
            (local.get $writes))
          (local.set $p (i32.add (local.get $p) (local.get $length)))
          (br $next)))))

  (func $take (param $at i32) (param $writes i32)
    (if (local.get $writes)
      (then (call $put (i32.load (local.get $at))))
      (else (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (i32.const 1))))))

  ;; Resets the counts of the previous block to 0: of pairs, only those that occurred.
  (func $clear
    (local $row i32)
    (loop $next
      (if (i32.load offset=0x41000 (local.get $row))
        (then (memory.fill (i32.shl (local.get $row) (i32.const 8)) (i32.const 0) (i32.const 1024))))
      (local.set $row (i32.add (local.get $row) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $row) (i32.const 1024))))
    (memory.fill (global.get $runs) (i32.const 0) (i32.const 1036)))

  ;; Derives counts of bytes from those of pairs; a row of the table has the same second byte.
  (func $sum
    (local $row i32) (local $at i32) (local $column i32) (local $four v128) (local $total v128) (local $count i32)
    (memory.fill (global.get $bytes) (i32.const 0) (i32.const 1024))
    (loop $nextRow
      (local.set $total (v128.const i64x2 0 0))
      (local.set $column (i32.const 0))
      (loop $nextFour
        (local.set $four (v128.load (local.get $at)))
        (local.set $total (i32x4.add (local.get $total) (local.get $four)))
        (v128.store offset=0x40800 (local.get $column)
          (i32x4.add (v128.load offset=0x40800 (local.get $column)) (local.get $four)))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (local.set $column (i32.add (local.get $column) (i32.const 16)))
        (br_if $nextFour (i32.lt_u (local.get $column) (i32.const 1024))))
      (local.set $count
        (i32.add
          (i32.add (i32x4.extract_lane 0 (local.get $total)) (i32x4.extract_lane 1 (local.get $total)))
          (i32.add (i32x4.extract_lane 2 (local.get $total)) (i32x4.extract_lane 3 (local.get $total)))))
      (i32.store offset=0x41000 (local.get $row) (local.get $count))
      (i32.store offset=0x40800 (local.get $row)
        (i32.add (i32.load offset=0x40800 (local.get $row)) (local.get $count)))
      (local.set $row (i32.add (local.get $row) (i32.const 4)))
      (br_if $nextRow (i32.lt_u (local.get $row) (i32.const 1024)))))

  ;; Derives entries of pairs from those of bytes, in rows with pairs. A product places the bits of the second byte above those
  ;; of the first, because vector shifts cannot differ by lane.
  (func (export "pair")
    (local $row i32) (local $at i32) (local $column i32) (local $entry i32) (local $code v128) (local $length v128)
    (loop $nextRow
      (if (i32.load offset=0x41000 (local.get $row))
        (then
          (local.set $entry (i32.load offset=0x40800 (local.get $row)))
          (local.set $code (i32x4.splat (i32.shr_u (local.get $entry) (i32.const 6))))
          (local.set $length (i32x4.splat (i32.and (local.get $entry) (i32.const 63))))
          (local.set $at (i32.shl (local.get $row) (i32.const 8)))
          (local.set $column (i32.const 0))
          (loop $nextFour
            (v128.store (i32.add (local.get $at) (local.get $column))
              (i32x4.add
                (i32x4.add (v128.load offset=0x40800 (local.get $column)) (local.get $length))
                (i32x4.mul (v128.load offset=0x40c00 (local.get $column)) (local.get $code))))
            (local.set $column (i32.add (local.get $column) (i32.const 16)))
            (br_if $nextFour (i32.lt_u (local.get $column) (i32.const 1024))))))
      (local.set $row (i32.add (local.get $row) (i32.const 4)))
      (br_if $nextRow (i32.lt_u (local.get $row) (i32.const 1024)))))

  ;; Writes the bits of one entry.
  (func $put (export "put") (param $entry i32)
    (local $wide i64) (local $bits i64) (local $held i64)
    (local.set $wide (i64.extend_i32_u (local.get $entry)))
    (local.set $bits
      (i64.or (global.get $bits) (i64.shl (i64.shr_u (local.get $wide) (i64.const 6)) (global.get $held))))
    (local.set $held (i64.and (i64.add (global.get $held) (local.get $wide)) (i64.const 63)))
    (i64.store (global.get $out) (local.get $bits))
    (global.set $out (i32.add (global.get $out) (i32.wrap_i64 (i64.shr_u (local.get $held) (i64.const 3)))))
    (global.set $bits (i64.shr_u (local.get $bits) (i64.and (local.get $held) (i64.const 56))))
    (global.set $held (i64.and (local.get $held) (i64.const 7))))

  ;; Pads the last byte with zeros; afterwards no bits are pending.
  (func (export "align")
    (i64.store (global.get $out) (global.get $bits))
    (global.set $out (i32.add (global.get $out) (i64.ne (global.get $held) (i64.const 0))))
    (global.set $bits (i64.const 0))
    (global.set $held (i64.const 0))))
