;; Decodes DEFLATE (RFC 1951) by the tables of huffman-tables.wat, whose memory also holds input and output; inflate.ts defines
;; the layout.
;;
;; $bits holds bits that are read but not consumed, the next bit third lowest, so that masking alone yields addresses in the
;; tables. The lowest six bits of $held are their number plus two. Its other bits do not count, because a shift uses no others,
;; so complete entries are subtracted.
;;
;; The decoder reads up to 1 KiB beyond the input, and writes up to 300 bytes beyond the end of the output. Bits beyond the
;; input are detected at the end, and their output is discarded; so even bits that are not a code are consumed.
(module
  (import "codes" "memory" (memory 1))
  (import "codes" "sort" (func $sort (param i32 i32 i32) (result i32)))
  (import "codes" "find" (func $find (param i32 i32) (result i32)))
  (import "codes" "tables" (func $tables (param i32 i32) (result i32)))
  (import "codes" "longLiteral" (func $longLiteral (param i32) (result i32)))
  (import "codes" "longDistance" (func $longDistance (param i32) (result i32)))
  (import "codes" "lengthCode" (global $lengthCode i32))
  (import "codes" "lengths" (global $lengths i32))

  ;; Addresses that only this module uses, repeated as offsets below: the order of the code length codes; by distance, how many
  ;; bytes of 16 are complete repeats, and the byte to copy at each of 16 positions.
  (global $order i32 (i32.const 0x5e00))                     ;; 19 bytes
  (global $steps i32 (i32.const 0x5e20))                     ;; 16 bytes
  (global $patterns i32 (i32.const 0x5f00))                  ;; 16 times 16 bytes

  (data (i32.const 0x5e00) "\10\11\12\00\08\07\09\06\0a\05\0b\04\0c\03\0d\02\0e\01\0f")

  ;; Results of $inflate, in addition to 0 for a complete stream.
  (global $STOPPED i32 (i32.const 1))
  (global $ENDS_EARLY i32 (i32.const 2))
  (global $BLOCK_TYPE i32 (i32.const 3))
  (global $CODE_LENGTHS i32 (i32.const 4))
  (global $STORED_LENGTH i32 (i32.const 5))
  (global $NO_CODE i32 (i32.const 6))
  (global $DISTANCE i32 (i32.const 7))
  ;; Marks the end of a block, instead of a number of extra bits in an entry.
  (global $END i32 (i32.const 31))

  (global $in (export "in") (mut i32) (i32.const 0))
  (global $inEnd (mut i32) (i32.const 0))
  (global $start (mut i32) (i32.const 0))
  (global $out (export "out") (mut i32) (i32.const 0))
  (global $stop (mut i32) (i32.const 0))
  (global $bits (mut i64) (i64.const 0))
  (global $held (mut i64) (i64.const 2))
  ;; 1 if the tables are those of the fixed codes.
  (global $fixed (mut i32) (i32.const 0))

  (start $makePatterns)
  (func $makePatterns
    (local $distance i32) (local $i i32)
    (local.set $distance (i32.const 1))
    (loop $next
      (i32.store8 offset=0x5e20
        (local.get $distance)
        (i32.sub (i32.const 16) (i32.rem_u (i32.const 16) (local.get $distance))))
      (local.set $i (i32.const 0))
      (loop $each
        (i32.store8 offset=0x5f00
          (i32.or (i32.shl (local.get $distance) (i32.const 4)) (local.get $i))
          (i32.rem_u (local.get $i) (local.get $distance)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $each (i32.lt_u (local.get $i) (i32.const 16))))
      (local.set $distance (i32.add (local.get $distance) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $distance) (i32.const 16)))))

  ;; Decodes the bytes from $in to $inEnd, and writes from $out on until $stop or beyond.
  (func (export "inflate") (param $in i32) (param $inEnd i32) (param $out i32) (param $stop i32) (result i32)
    (local $last i32) (local $found i32)
    (global.set $in (local.get $in))
    (global.set $inEnd (local.get $inEnd))
    (global.set $start (local.get $out))
    (global.set $out (local.get $out))
    (global.set $stop (local.get $stop))
    (global.set $bits (i64.const 0))
    (global.set $held (i64.const 2))
    (block $done
      (loop $next
        (local.set $last (call $take (i32.const 1)))
        (local.set $found (call $block (call $take (i32.const 2))))
        (br_if $done (i32.or (local.get $found) (local.get $last)))
        (br_if $done (call $isBeyond))
        ;; A block may end just beyond $stop; the next block then starts with room.
        (if (i32.ge_u (global.get $out) (global.get $stop))
          (then
            (local.set $found (global.get $STOPPED))
            (br $done)))
        (br $next)))
    (if (call $isBeyond) (then (return (global.get $ENDS_EARLY))))
    ;; Returns complete bytes that were not consumed.
    (global.set $in
      (i32.sub
        (global.get $in)
        (i32.wrap_i64 (i64.shr_u (i64.sub (global.get $held) (i64.const 2)) (i64.const 3)))))
    (local.get $found))

  (func $block (param $type i32) (result i32)
    (local $found i32)
    (if (i32.eqz (local.get $type)) (then (return (call $stored))))
    (if (i32.eq (local.get $type) (i32.const 3)) (then (return (global.get $BLOCK_TYPE))))
    (if (i32.eq (local.get $type) (i32.const 1))
      (then
        (if (i32.eqz (global.get $fixed)) (then (call $fixedCodes))))
      (else
        (if (call $dynamicCodes) (then (return (global.get $CODE_LENGTHS))))))
    (local.set $found (call $symbols))
    (global.set $held (i64.and (global.get $held) (i64.const 63)))
    (local.get $found))

  ;; 1 if more bits were consumed than the input has.
  (func $isBeyond (result i32)
    (i64.gt_s
      (i64.shl
        (i64.sub (i64.extend_i32_u (global.get $in)) (i64.extend_i32_u (global.get $inEnd)))
        (i64.const 3))
      (i64.sub (global.get $held) (i64.const 2))))

  ;; Afterwards at least 54 bits are available.
  (func $refill
    (global.set $bits (i64.or (global.get $bits) (i64.shl (i64.load (global.get $in)) (global.get $held))))
    (global.set $in
      (i32.add
        (global.get $in)
        (i32.wrap_i64 (i64.shr_u (i64.sub (i64.const 63) (global.get $held)) (i64.const 3)))))
    (global.set $held (i64.or (global.get $held) (i64.const 56))))

  ;; The next $count bits, up to 16.
  (func $take (param $count i32) (result i32)
    (call $refill)
    (call $drop
      (local.get $count)
      (i32.and
        (i32.wrap_i64 (i64.shr_u (global.get $bits) (i64.const 2)))
        (i32.sub (i32.shl (i32.const 1) (local.get $count)) (i32.const 1)))))

  ;; Consumes $count bits.
  (func $drop (param $count i32) (param $number i32) (result i32)
    (global.set $bits (i64.shr_u (global.get $bits) (i64.extend_i32_u (local.get $count))))
    (global.set $held (i64.sub (global.get $held) (i64.extend_i32_u (local.get $count))))
    (local.get $number))

  ;; A stored block (3.2.4).
  (func $stored (result i32)
    (local $length i32) (local $room i32)
    ;; Skips to the next byte boundary.
    (drop (call $take (i32.and (i32.sub (i32.wrap_i64 (global.get $held)) (i32.const 2)) (i32.const 7))))
    (local.set $length (call $take (i32.const 16)))
    (if (i32.ne (i32.xor (local.get $length) (call $take (i32.const 16))) (i32.const 0xffff))
      (then (return (global.get $STORED_LENGTH))))
    ;; Returns the bits that are held.
    (global.set $in
      (i32.sub
        (global.get $in)
        (i32.wrap_i64 (i64.shr_u (i64.sub (global.get $held) (i64.const 2)) (i64.const 3)))))
    (global.set $bits (i64.const 0))
    (global.set $held (i64.const 2))
    (if (i32.gt_s (local.get $length) (i32.sub (global.get $inEnd) (global.get $in)))
      (then
        (global.set $in (i32.add (global.get $inEnd) (i32.const 1)))
        (return (global.get $ENDS_EARLY))))
    (local.set $room (i32.sub (global.get $stop) (global.get $out)))
    (if (i32.gt_u (local.get $length) (local.get $room)) (then (local.set $length (local.get $room))))
    (memory.copy (global.get $out) (global.get $in) (local.get $length))
    (global.set $in (i32.add (global.get $in) (local.get $length)))
    (global.set $out (i32.add (global.get $out) (local.get $length)))
    (i32.and (i32.ge_u (global.get $out) (global.get $stop)) (global.get $STOPPED)))

  ;; Tables of the fixed codes (3.2.6).
  (func $fixedCodes
    (memory.fill (global.get $lengths) (i32.const 8) (i32.const 144))
    (memory.fill (i32.add (global.get $lengths) (i32.const 144)) (i32.const 9) (i32.const 112))
    (memory.fill (i32.add (global.get $lengths) (i32.const 256)) (i32.const 7) (i32.const 24))
    (memory.fill (i32.add (global.get $lengths) (i32.const 280)) (i32.const 8) (i32.const 8))
    (memory.fill (i32.add (global.get $lengths) (i32.const 288)) (i32.const 5) (i32.const 32))
    (drop (call $tables (i32.const 288) (i32.const 32)))
    (global.set $fixed (i32.const 1)))

  ;; Tables of the codes at the start of a block (3.2.7); returns an error code, or 0.
  (func $dynamicCodes (result i32)
    (local $literals i32) (local $distances i32) (local $sent i32) (local $i i32) (local $all i32) (local $symbol i32)
    (local $length i32) (local $run i32)
    (global.set $fixed (i32.const 0))
    (local.set $literals (i32.add (call $take (i32.const 5)) (i32.const 257)))
    (local.set $distances (i32.add (call $take (i32.const 5)) (i32.const 1)))
    (local.set $sent (i32.add (call $take (i32.const 4)) (i32.const 4)))
    (if (i32.or
          (i32.gt_u (local.get $literals) (i32.const 286))
          (i32.gt_u (local.get $distances) (i32.const 30)))
      (then (return (i32.const 1))))
    (memory.fill (global.get $lengths) (i32.const 0) (i32.const 19))
    (loop $each
      (i32.store8
        (i32.add (global.get $lengths) (i32.load8_u (i32.add (global.get $order) (local.get $i))))
        (call $take (i32.const 3)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $each (i32.lt_u (local.get $i) (local.get $sent))))
    (if (call $sort (global.get $lengthCode) (global.get $lengths) (i32.const 19)) (then (return (i32.const 1))))

    (local.set $all (i32.add (local.get $literals) (local.get $distances)))
    (local.set $i (i32.const 0))
    (loop $next
      (call $refill)
      (local.set $symbol
        (call $find (global.get $lengthCode) (i32.wrap_i64 (i64.shr_u (global.get $bits) (i64.const 2)))))
      (if (i32.eqz (local.get $symbol)) (then (return (call $drop (i32.const 7) (i32.const 1)))))
      (local.set $symbol (call $drop (i32.and (local.get $symbol) (i32.const 15)) (i32.shr_u (local.get $symbol) (i32.const 4))))
      (if (i32.lt_u (local.get $symbol) (i32.const 16))
        (then
          (local.set $length (local.get $symbol))
          (local.set $run (i32.const 1)))
        (else
          (if (i32.eq (local.get $symbol) (i32.const 16))
            (then
              (if (i32.eqz (local.get $i)) (then (return (i32.const 1))))
              (local.set $run (i32.add (call $take (i32.const 2)) (i32.const 3))))
            (else
              (local.set $length (i32.const 0))
              (if (i32.eq (local.get $symbol) (i32.const 17))
                (then (local.set $run (i32.add (call $take (i32.const 3)) (i32.const 3))))
                (else (local.set $run (i32.add (call $take (i32.const 7)) (i32.const 11)))))))))
      (if (i32.gt_u (i32.add (local.get $i) (local.get $run)) (local.get $all)) (then (return (i32.const 1))))
      (memory.fill (i32.add (global.get $lengths) (local.get $i)) (local.get $length) (local.get $run))
      (local.set $i (i32.add (local.get $i) (local.get $run)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $all))))
    ;; A block without a code for its end.
    (if (i32.eqz (i32.load8_u offset=256 (global.get $lengths))) (then (return (i32.const 1))))
    (call $tables (local.get $literals) (local.get $distances)))

  ;; Decodes the symbols of a block.
  (func $symbols (result i32)
    (local $in i32) (local $inStop i32) (local $out i32) (local $stop i32) (local $bits i64) (local $held i64)
    (local $entry i64) (local $code i32) (local $found i32) (local $length i32) (local $distance i32)
    (local $from i32) (local $end i32) (local $pattern v128) (local $step i32)
    (local.set $in (global.get $in))
    (local.set $inStop (i32.add (global.get $inEnd) (i32.const 8)))
    (local.set $out (global.get $out))
    (local.set $stop (global.get $stop))
    (local.set $bits (global.get $bits))
    (local.set $held (global.get $held))
    (block $done
      (loop $next
        (block $special
          (if (i32.ge_u (local.get $out) (local.get $stop))
            (then
              (local.set $found (global.get $STOPPED))
              (br $done)))
          (if (i32.gt_u (local.get $in) (local.get $inStop))
            (then
              (local.set $found (global.get $ENDS_EARLY))
              (br $done)))
          (local.set $bits
            (i64.or (local.get $bits) (i64.shl (i64.load (local.get $in)) (local.get $held))))
          (local.set $in
            (i32.add
              (local.get $in)
              (i32.and
                (i32.shr_u (i32.xor (i32.wrap_i64 (local.get $held)) (i32.const 63)) (i32.const 3))
                (i32.const 7))))
          (local.set $held (i64.or (local.get $held) (i64.const 56)))

          (local.set $entry (i64.load32_u (i32.and (i32.wrap_i64 (local.get $bits)) (i32.const 0x3ffc))))
          (local.set $code (i32.wrap_i64 (local.get $entry)))
          (br_if $special (i32.lt_u (local.get $code) (i32.const 0x40000000)))
          (i32.store (local.get $out) (i32.shr_u (local.get $code) (i32.const 6)))
          (local.set $out (i32.add (local.get $out) (i32.shr_u (local.get $code) (i32.const 30))))
          (local.set $bits (i64.shr_u (local.get $bits) (local.get $entry)))
          (local.set $held (i64.sub (local.get $held) (local.get $entry)))

          (local.set $entry (i64.load32_u (i32.and (i32.wrap_i64 (local.get $bits)) (i32.const 0x3ffc))))
          (local.set $code (i32.wrap_i64 (local.get $entry)))
          (br_if $special (i32.lt_u (local.get $code) (i32.const 0x40000000)))
          (i32.store (local.get $out) (i32.shr_u (local.get $code) (i32.const 6)))
          (local.set $out (i32.add (local.get $out) (i32.shr_u (local.get $code) (i32.const 30))))
          (local.set $bits (i64.shr_u (local.get $bits) (local.get $entry)))
          (local.set $held (i64.sub (local.get $held) (local.get $entry)))

          (local.set $entry (i64.load32_u (i32.and (i32.wrap_i64 (local.get $bits)) (i32.const 0x3ffc))))
          (local.set $code (i32.wrap_i64 (local.get $entry)))
          (br_if $special (i32.lt_u (local.get $code) (i32.const 0x40000000)))
          (i32.store (local.get $out) (i32.shr_u (local.get $code) (i32.const 6)))
          (local.set $out (i32.add (local.get $out) (i32.shr_u (local.get $code) (i32.const 30))))
          (local.set $bits (i64.shr_u (local.get $bits) (local.get $entry)))
          (local.set $held (i64.sub (local.get $held) (local.get $entry)))

          (local.set $entry (i64.load32_u (i32.and (i32.wrap_i64 (local.get $bits)) (i32.const 0x3ffc))))
          (local.set $code (i32.wrap_i64 (local.get $entry)))
          (br_if $special (i32.lt_u (local.get $code) (i32.const 0x40000000)))
          (i32.store (local.get $out) (i32.shr_u (local.get $code) (i32.const 6)))
          (local.set $out (i32.add (local.get $out) (i32.shr_u (local.get $code) (i32.const 30))))
          (local.set $bits (i64.shr_u (local.get $bits) (local.get $entry)))
          (local.set $held (i64.sub (local.get $held) (local.get $entry)))
          (br $next))

        ;; Not a single literal. 54 bits are enough for the longest length and distance.
        (local.set $bits
          (i64.or (local.get $bits) (i64.shl (i64.load (local.get $in)) (local.get $held))))
        (local.set $in
          (i32.add
            (local.get $in)
            (i32.and
              (i32.shr_u (i32.xor (i32.wrap_i64 (local.get $held)) (i32.const 63)) (i32.const 3))
              (i32.const 7))))
        (local.set $held (i64.or (local.get $held) (i64.const 56)))
        (if (i32.eqz (local.get $code))
          (then
            (local.set $code (call $longLiteral (i32.wrap_i64 (i64.shr_u (local.get $bits) (i64.const 2)))))
            (if (i32.eqz (local.get $code))
              (then
                (local.set $held (i64.sub (local.get $held) (i64.const 15)))
                (local.set $found (global.get $NO_CODE))
                (br $done)))))
        (local.set $length
          (i32.add
            (i32.shr_u (local.get $code) (i32.const 15))
            (i32.shr_u
              (i32.and
                (i32.wrap_i64 (i64.shr_u (local.get $bits) (i64.const 2)))
                (i32.sub (i32.shl (i32.const 1) (local.get $code)) (i32.const 1)))
              (i32.and (i32.shr_u (local.get $code) (i32.const 6)) (i32.const 15)))))
        (local.set $bits (i64.shr_u (local.get $bits) (i64.extend_i32_u (local.get $code))))
        (local.set $held (i64.sub (local.get $held) (i64.extend_i32_u (local.get $code))))
        (if (i32.ge_u (local.get $code) (i32.const 0x40000000))
          (then
            (i32.store8 (local.get $out) (i32.shr_u (local.get $code) (i32.const 6)))
            (local.set $out (i32.add (local.get $out) (i32.const 1)))
            (br $next)))
        (br_if $done
          (i32.eq
            (i32.and (i32.shr_u (local.get $code) (i32.const 10)) (global.get $END))
            (global.get $END)))

        (local.set $code
          (i32.load offset=0x4000 (i32.and (i32.wrap_i64 (local.get $bits)) (i32.const 0xffc))))
        (if (i32.eqz (local.get $code))
          (then
            (local.set $code (call $longDistance (i32.wrap_i64 (i64.shr_u (local.get $bits) (i64.const 2)))))
            (if (i32.eqz (local.get $code))
              (then
                (local.set $held (i64.sub (local.get $held) (i64.const 15)))
                (local.set $found (global.get $NO_CODE))
                (br $done)))))
        (local.set $distance
          (i32.add
            (i32.shr_u (local.get $code) (i32.const 15))
            (i32.shr_u
              (i32.and
                (i32.wrap_i64 (i64.shr_u (local.get $bits) (i64.const 2)))
                (i32.sub (i32.shl (i32.const 1) (local.get $code)) (i32.const 1)))
              (i32.and (i32.shr_u (local.get $code) (i32.const 6)) (i32.const 15)))))
        (local.set $bits (i64.shr_u (local.get $bits) (i64.extend_i32_u (local.get $code))))
        (local.set $held (i64.sub (local.get $held) (i64.extend_i32_u (local.get $code))))
        (if (i32.gt_u (local.get $distance) (i32.sub (local.get $out) (global.get $start)))
          (then
            (local.set $found (global.get $DISTANCE))
            (br $done)))

        (local.set $end (i32.add (local.get $out) (local.get $length)))
        (local.set $from (i32.sub (local.get $out) (local.get $distance)))
        (if (i32.ge_u (local.get $distance) (i32.const 16))
          (then
            (v128.store (local.get $out) (v128.load (local.get $from)))
            (v128.store offset=16 (local.get $out) (v128.load offset=16 (local.get $from)))
            (if (i32.gt_u (local.get $length) (i32.const 32))
              (then
                (loop $copy
                  (v128.store offset=32 (local.get $out) (v128.load offset=32 (local.get $from)))
                  (local.set $out (i32.add (local.get $out) (i32.const 16)))
                  (local.set $from (i32.add (local.get $from) (i32.const 16)))
                  (br_if $copy (i32.lt_u (i32.add (local.get $out) (i32.const 32)) (local.get $end)))))))
          (else
            (local.set $pattern
              (i8x16.swizzle
                (v128.load (local.get $from))
                (v128.load offset=0x5f00 (i32.shl (local.get $distance) (i32.const 4)))))
            (local.set $step (i32.load8_u offset=0x5e20 (local.get $distance)))
            (loop $repeat
              (v128.store (local.get $out) (local.get $pattern))
              (local.set $out (i32.add (local.get $out) (local.get $step)))
              (br_if $repeat (i32.lt_u (local.get $out) (local.get $end))))))
        (local.set $out (local.get $end))
        (br $next)))
    (global.set $in (local.get $in))
    (global.set $out (local.get $out))
    (global.set $bits (local.get $bits))
    (global.set $held (local.get $held))
    (local.get $found)))
