import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { badSlots } from '../errors.js';
import { SLOTS } from './slots.js';

/** A set of slots. */
export class SlotSet {
  private readonly bits = new Uint8Array(SLOTS / 8);
  private count = 0;

  constructor(slots: Iterable<number> = []) {
    for (const slot of slots) this.add(slot);
  }

  get size(): number {
    return this.count;
  }

  has(slot: number): boolean {
    return ((this.bits[slot >>> 3] >>> (slot & 7)) & 1) === 1;
  }

  add(slot: number): void {
    if (this.has(slot)) return;
    this.bits[slot >>> 3] |= 1 << (slot & 7);
    this.count++;
  }

  /** Iterates in ascending order. */
  *[Symbol.iterator](): Generator<number> {
    for (let slot = 0; slot < SLOTS; slot++) if (this.has(slot)) yield slot;
  }

  /** A short text: a list of up to 64 slots, otherwise the deflated bits as base64, at most 2.8 kB. */
  toText(): string {
    return this.count <= 64 ? [...this].join(',') : `z${deflateRawSync(this.bits).toString('base64')}`;
  }

  private static ofBits(bits: Uint8Array): SlotSet {
    const set = new SlotSet();
    set.bits.set(bits);
    for (let byte of bits) for (; byte > 0; byte &= byte - 1) set.count++;
    return set;
  }

  /** Parses the result of `toText`. Throws TW_DHT_BAD_SLOTS. */
  static fromText(text: string): SlotSet {
    if (text === '') return new SlotSet();
    if (text.startsWith('z')) return SlotSet.ofBits(bitsOf(text));
    const slots = text.split(',').map(Number);
    if (!/^\d{1,5}(,\d{1,5})*$/.test(text) || slots.some((slot) => slot >= SLOTS)) throw badSlots(text);
    return new SlotSet(slots);
  }
}

function bitsOf(text: string): Uint8Array {
  let bits: Buffer;
  try {
    bits = inflateRawSync(Buffer.from(text.slice(1), 'base64'), { maxOutputLength: SLOTS / 8 });
  } catch (error) {
    throw badSlots.because(error, text);
  }
  if (bits.length !== SLOTS / 8) throw badSlots(text);
  return bits;
}
