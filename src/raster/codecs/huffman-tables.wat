;; Tables of the prefix codes of DEFLATE (RFC 1951, 3.2.2), in which inflate.wat looks up symbols.
;;
;; Two tables are indexed by the next bits: 12 bits for literals and lengths, 10 for distances. An "entry" has, from its lowest
;; bit on:
;; - 6 bits: the number of bits it consumes;
;; - 24 bits: up to three literals; or 4 bits, the length of the code, the other consumed bits being extra bits; 5 bits, the
;; number of extra bits, or $END; and 15 bits, the least length or distance;
;; - 2 bits: the number of literals.
;; An entry is 0 if its bits start a longer code, or none: such a code is decoded bit by bit.
(module
  (memory (export "memory") 1)
  ;; Addresses.
  (global $literals i32 (i32.const 0))                            ;; 4096 entries, by the next 12 bits
  (global $distances i32 (i32.const 0x4000))                      ;; 1024 entries, by the next 10 bits
  ;; Codes: 16 words with the number of codes of each length, then their symbols in order, as words.
  (global $literalCode i32 (i32.const 0x5000))
  (global $distanceCode i32 (i32.const 0x5600))
  (global $lengthCode (export "lengthCode") i32 (i32.const 0x5800))
  (global $lengths (export "lengths") i32 (i32.const 0x5a00))     ;; 320 bytes: how long the code of each symbol is
  (global $next i32 (i32.const 0x5c00))                           ;; 16 words: where the next symbol of each length goes
  (global (export "free") i32 (i32.const 0x6000))                 ;; all the rest, after the addresses of inflate.wat

  ;; Marks the end of a block, instead of a number of extra bits.
  (global $END i32 (i32.const 31))

  ;; Fills both tables from the code lengths of the given numbers of symbols; returns 1 if the lengths are invalid.
  (func (export "tables") (param $literals i32) (param $distances i32) (result i32)
    (if (call $sort (global.get $literalCode) (global.get $lengths) (local.get $literals)) (then (return (i32.const 1))))
    (if (call $sort (global.get $distanceCode) (i32.add (global.get $lengths) (local.get $literals)) (local.get $distances))
      (then (return (i32.const 1))))
    (call $fill (global.get $literalCode) (global.get $literals) (i32.const 12))
    (call $fill (global.get $distanceCode) (global.get $distances) (i32.const 10))
    (call $join)
    (i32.const 0))

  ;; Sorts the symbols by code length; returns 1 if no code has these lengths. A code may be incomplete only if it has one
  ;; symbol of one bit, or none.
  (func $sort (export "sort") (param $code i32) (param $from i32) (param $count i32) (result i32)
    (local $i i32) (local $length i32) (local $at i32) (local $left i32) (local $longest i32) (local $sum i32)
    (memory.fill (local.get $code) (i32.const 0) (i32.const 64))
    (loop $count
      (local.set $at
        (i32.add (local.get $code) (i32.shl (i32.load8_u (i32.add (local.get $from) (local.get $i))) (i32.const 2))))
      (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (i32.const 1)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $count (i32.lt_u (local.get $i) (local.get $count))))
    (i32.store (local.get $code) (i32.const 0))

    (local.set $left (i32.const 1))
    (local.set $length (i32.const 1))
    (local.set $sum (i32.add (local.get $code) (i32.const 64)))
    (loop $each
      (local.set $at (i32.shl (local.get $length) (i32.const 2)))
      (i32.store (i32.add (global.get $next) (local.get $at)) (local.get $sum))
      (local.set $i (i32.load (i32.add (local.get $code) (local.get $at))))
      (if (local.get $i) (then (local.set $longest (local.get $length))))
      (local.set $sum (i32.add (local.get $sum) (i32.shl (local.get $i) (i32.const 2))))
      (local.set $left (i32.sub (i32.shl (local.get $left) (i32.const 1)) (local.get $i)))
      (if (i32.lt_s (local.get $left) (i32.const 0)) (then (return (i32.const 1))))
      (local.set $length (i32.add (local.get $length) (i32.const 1)))
      (br_if $each (i32.lt_u (local.get $length) (i32.const 16))))
    (if (i32.and (i32.gt_s (local.get $left) (i32.const 0)) (i32.gt_u (local.get $longest) (i32.const 1)))
      (then (return (i32.const 1))))

    (local.set $i (i32.const 0))
    (loop $place
      (local.set $length (i32.load8_u (i32.add (local.get $from) (local.get $i))))
      (if (local.get $length)
        (then
          (local.set $at (i32.add (global.get $next) (i32.shl (local.get $length) (i32.const 2))))
          (i32.store (i32.load (local.get $at)) (local.get $i))
          (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (i32.const 4)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $place (i32.lt_u (local.get $i) (local.get $count))))
    (i32.const 0))

  ;; The symbol of the code at the start of $bits, times 16, plus the length of the code; 0 if there is none.
  (func $find (export "find") (param $code i32) (param $bits i32) (result i32)
    (local $length i32) (local $number i32) (local $at i32) (local $count i32)
    ;; $number counts from the first code of a length on, $at from its symbol.
    (local.set $at (i32.add (local.get $code) (i32.const 64)))
    (loop $next
      (local.set $length (i32.add (local.get $length) (i32.const 1)))
      (local.set $number
        (i32.or (i32.shl (local.get $number) (i32.const 1)) (i32.and (local.get $bits) (i32.const 1))))
      (local.set $bits (i32.shr_u (local.get $bits) (i32.const 1)))
      (local.set $count (i32.load (i32.add (local.get $code) (i32.shl (local.get $length) (i32.const 2)))))
      (if (i32.lt_u (local.get $number) (local.get $count))
        (then
          (return
            (i32.or
              (local.get $length)
              (i32.shl
                (i32.load (i32.add (local.get $at) (i32.shl (local.get $number) (i32.const 2))))
                (i32.const 4))))))
      (local.set $number (i32.sub (local.get $number) (local.get $count)))
      (local.set $at (i32.add (local.get $at) (i32.shl (local.get $count) (i32.const 2))))
      (br_if $next (i32.lt_u (local.get $length) (i32.const 15))))
    (i32.const 0))

  ;; Fills a table with the entries of all codes of up to $bits bits.
  (func $fill (param $code i32) (param $table i32) (param $bits i32)
    (local $length i32) (local $number i32) (local $left i32) (local $symbol i32) (local $entry i32) (local $at i32)
    (local $end i32) (local $step i32) (local $distance i32)
    (local.set $distance (i32.eq (local.get $table) (global.get $distances)))
    (local.set $end (i32.add (local.get $table) (i32.shl (i32.const 4) (local.get $bits))))
    (memory.fill (local.get $table) (i32.const 0) (i32.shl (i32.const 4) (local.get $bits)))
    (local.set $symbol (i32.add (local.get $code) (i32.const 64)))
    (loop $longer
      (local.set $length (i32.add (local.get $length) (i32.const 1)))
      (local.set $number (i32.shl (local.get $number) (i32.const 1)))
      (local.set $left (i32.load (i32.add (local.get $code) (i32.shl (local.get $length) (i32.const 2)))))
      (local.set $step (i32.shl (i32.const 4) (local.get $length)))
      (block $none
        (loop $next
          (br_if $none (i32.eqz (local.get $left)))
          (local.set $entry
            (call $entry
              (local.get $distance)
              (i32.or (i32.shl (i32.load (local.get $symbol)) (i32.const 4)) (local.get $length))))
          (local.set $at
            (i32.add
              (local.get $table)
              (i32.shl (call $reversed (local.get $number) (local.get $length)) (i32.const 2))))
          (loop $repeat
            (i32.store (local.get $at) (local.get $entry))
            (local.set $at (i32.add (local.get $at) (local.get $step)))
            (br_if $repeat (i32.lt_u (local.get $at) (local.get $end))))
          (local.set $symbol (i32.add (local.get $symbol) (i32.const 4)))
          (local.set $number (i32.add (local.get $number) (i32.const 1)))
          (local.set $left (i32.sub (local.get $left) (i32.const 1)))
          (br $next)))
      (br_if $longer (i32.lt_u (local.get $length) (local.get $bits)))))

  (func $reversed (param $number i32) (param $length i32) (result i32)
    (local $result i32)
    (loop $next
      (local.set $result
        (i32.or (i32.shl (local.get $result) (i32.const 1)) (i32.and (local.get $number) (i32.const 1))))
      (local.set $number (i32.shr_u (local.get $number) (i32.const 1)))
      (local.set $length (i32.sub (local.get $length) (i32.const 1)))
      (br_if $next (local.get $length)))
    (local.get $result))

  ;; The entry of the result of $find; 0 for no result, and for symbols without meaning.
  (func $entry (param $distance i32) (param $found i32) (result i32)
    (local $symbol i32) (local $length i32) (local $kinds i32) (local $extra i32) (local $base i32)
    (if (i32.eqz (local.get $found)) (then (return (i32.const 0))))
    (local.set $symbol (i32.shr_u (local.get $found) (i32.const 4)))
    (local.set $length (i32.and (local.get $found) (i32.const 15)))
    (if (i32.eqz (local.get $distance))
      (then
        (if (i32.lt_u (local.get $symbol) (i32.const 256))
          (then
            (return
              (i32.or
                (i32.or (local.get $length) (i32.shl (local.get $symbol) (i32.const 6)))
                (i32.const 0x40000000)))))
        (if (i32.eq (local.get $symbol) (i32.const 256))
          (then
            (return
              (i32.or
                (i32.or (local.get $length) (i32.shl (local.get $length) (i32.const 6)))
                (i32.shl (global.get $END) (i32.const 10))))))
        (local.set $symbol (i32.sub (local.get $symbol) (i32.const 257)))))
    (if (i32.gt_u (local.get $symbol) (i32.add (i32.const 28) (local.get $distance))) (then (return (i32.const 0))))
    ;; One more extra bit for every 2 distances or 4 lengths, from the second group on. The longest length has none.
    (local.set $kinds (i32.sub (i32.const 2) (local.get $distance)))
    (local.set $extra (i32.shr_u (local.get $symbol) (local.get $kinds)))
    (local.set $extra (i32.sub (local.get $extra) (i32.ne (local.get $extra) (i32.const 0))))
    (local.set $base
      (i32.add
        (i32.shl
          (i32.sub (local.get $symbol) (i32.shl (local.get $extra) (local.get $kinds)))
          (local.get $extra))
        (select (i32.const 1) (i32.const 3) (local.get $distance))))
    (if (i32.and (i32.eqz (local.get $distance)) (i32.eq (local.get $symbol) (i32.const 28)))
      (then
        (local.set $extra (i32.const 0))
        (local.set $base (i32.const 258))))
    (i32.or
      (i32.or
        (i32.add (local.get $length) (local.get $extra))
        (i32.shl (local.get $length) (i32.const 6)))
      (i32.or
        (i32.shl (local.get $extra) (i32.const 10))
        (i32.shl (local.get $base) (i32.const 15)))))

  ;; Joins literals with those that follow them within the 12 bits, up to three, if at least half of the entries would have
  ;; two: otherwise the joining costs more than it saves.
  (func $join
    (if (i32.gt_u (call $joinEvery (i32.const 252) (i32.const 0)) (i32.const 32))
      (then (drop (call $joinEvery (i32.const 4) (i32.const 1))))))

  ;; Does so for one entry in $step bytes, or only counts the entries that would have two or three literals. Works from the
  ;; last entry to the first, because the following literal is at a lower index, whose entry must still be single.
  (func $joinEvery (param $step i32) (param $writes i32) (result i32)
    (local $at i32) (local $first i32) (local $second i32) (local $third i32) (local $used i32) (local $two i32)
    (local $three i32) (local $count i32)
    (local.set $at (i32.const 0x4000))
    (loop $next
      (local.set $at (i32.sub (local.get $at) (local.get $step)))
      (local.set $first (i32.load (local.get $at)))
      (local.set $second (i32.load (i32.and (i32.shr_u (local.get $at) (local.get $first)) (i32.const 0x3ffc))))
      (local.set $used (i32.and (i32.add (local.get $first) (local.get $second)) (i32.const 63)))
      (local.set $two
        (i32.and
          (i32.shr_u (i32.and (local.get $first) (local.get $second)) (i32.const 30))
          (i32.le_u (local.get $used) (i32.const 12))))
      (local.set $count (i32.add (local.get $count) (local.get $two)))
      (if (local.get $writes)
        (then
          (local.set $third (i32.load (i32.and (i32.shr_u (local.get $at) (local.get $used)) (i32.const 0x3ffc))))
          (local.set $three
            (i32.and
              (i32.and (local.get $two) (i32.shr_u (local.get $third) (i32.const 30)))
              (i32.le_u
                (i32.add (local.get $used) (i32.and (local.get $third) (i32.const 63)))
                (i32.const 12))))
          ;; Adds up the numbers of literals and of bits; bytes are appended.
          (i32.store
            (local.get $at)
            (i32.add
              (i32.add
                (local.get $first)
                (i32.and
                  (i32.sub (i32.const 0) (local.get $two))
                  (i32.add
                    (i32.and (local.get $second) (i32.const 0xc000003f))
                    (i32.shl (i32.and (local.get $second) (i32.const 0x3fc0)) (i32.const 8)))))
              (i32.and
                (i32.sub (i32.const 0) (local.get $three))
                (i32.add
                  (i32.and (local.get $third) (i32.const 0xc000003f))
                  (i32.shl (i32.and (local.get $third) (i32.const 0x3fc0)) (i32.const 16))))))))
      (br_if $next (i32.ge_u (local.get $at) (local.get $step))))
    (local.get $count))

  ;; Decodes a code at the start of $bits that no table has; 0 if there is none.
  (func (export "longLiteral") (param $bits i32) (result i32)
    (call $entry (i32.const 0) (call $find (global.get $literalCode) (local.get $bits))))

  (func (export "longDistance") (param $bits i32) (result i32)
    (call $entry (i32.const 1) (call $find (global.get $distanceCode) (local.get $bits)))))
