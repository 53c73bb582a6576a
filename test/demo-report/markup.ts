/** A small strict parser of the markup of reports, which checks that every tag is closed in order. */
import assert from 'node:assert/strict';

const VOID = new Set(['meta', 'img', 'input', 'br', 'hr']);
const TAG = /<(\/?)([a-z][a-z0-9]*)((?:\s+[a-z][a-zA-Z0-9-]*(?:="[^"<>]*")?)*)\s*(\/?)>/y;

/** Names of the elements in the order of their start tags. Throws if the markup is not well-formed. */
export function elementsOf(page: string): string[] {
  const names: string[] = [];
  const open: string[] = [];
  let at = page.indexOf('<html');
  while (at < page.length) {
    const next = page.indexOf('<', at);
    if (next < 0) break;
    assert.doesNotMatch(page.slice(at, next), />/, 'a stray >');
    TAG.lastIndex = next;
    const match = TAG.exec(page);
    assert.ok(match, `no tag: ${page.slice(next, next + 120)}`);
    const [whole, closing, name, attributes, selfClosing] = match;
    at = next + whole!.length;
    if (closing) {
      assert.equal(open.pop(), name, `closed out of order near ${page.slice(next - 80, next + 20)}`);
      continue;
    }
    names.push(name!);
    assertUniqueAttributes(attributes!, whole!);
    if (selfClosing || VOID.has(name!)) continue;
    open.push(name!);
    if (name === 'script' || name === 'style') at = page.indexOf(`</${name}>`, at);
  }
  assert.deepEqual(open, [], 'elements left open');
  return names;
}

export function assertWellFormed(page: string): void {
  assert.ok(page.startsWith('<!doctype html>\n<html lang="en">'));
  elementsOf(page);
}

function assertUniqueAttributes(attributes: string, tag: string): void {
  const names = [...attributes.matchAll(/\s([a-z][a-zA-Z0-9-]*)(?:="[^"]*")?/g)].map(([, name]) => name!);
  assert.equal(new Set(names).size, names.length, `an attribute twice: ${tag}`);
}
