/** Emits WebAssembly text: expressions are strings, and a function is a list of statements over named locals. */

export type Code = string;

/** A local variable or parameter. */
export interface Local {
  readonly name: string;
  /** Its value as an expression. */
  readonly get: Code;
  set(value: Code): Code;
}

/** Bytes of a vector. */
export const VECTOR = 16;

export const i32 = (value: number): Code => `(i32.const ${value})`;
export const add = (...terms: Code[]): Code => terms.reduce((sum, term) => `(i32.add ${sum} ${term})`);
export const sub = (a: Code, b: Code): Code => `(i32.sub ${a} ${b})`;
export const mul = (a: Code, b: Code): Code => `(i32.mul ${a} ${b})`;
export const isBelow = (a: Code, b: Code): Code => `(i32.lt_u ${a} ${b})`;
export const and = (...terms: Code[]): Code => terms.reduce((all, term) => `(i32.and ${all} ${term})`);

export const ZERO: Code = '(v128.const f32x4 0 0 0 0)';
export const load = (address: Code, offset = 0): Code => `(v128.load offset=${offset} ${address})`;
export const store = (address: Code, value: Code, offset = 0): Code =>
  `(v128.store offset=${offset} ${address} ${value})`;
export const loadSplat = (address: Code): Code => `(v128.load32_splat ${address})`;
export const f32x4 = (operation: string, ...values: Code[]): Code =>
  `(f32x4.${operation} ${values.join(' ')})`;

export const advance = (pointer: Local, by: Code): Code => pointer.set(add(pointer.get, by));

export function when(condition: Code, then: Code[], otherwise: Code[] = []): Code {
  const other = otherwise.length > 0 ? ` (else ${otherwise.join('\n')})` : '';
  return `(if ${condition} (then ${then.join('\n')})${other})`;
}

export const choose = (condition: Code, yes: Code, no: Code): Code =>
  `(if (result v128) ${condition} (then ${yes}) (else ${no}))`;

/** Locals of one function. */
export class Scope {
  readonly declared: string[] = [];
  private labels = 0;

  i32(name: string): Local {
    return this.local(name, 'i32');
  }

  v128(name: string): Local {
    return this.local(name, 'v128');
  }

  /** Runs `body` `counter` times, at least once, and counts `counter` down to 0. */
  countDown(counter: Local, body: Code[]): Code {
    const label = `$again${this.labels++}`;
    const next = `(br_if ${label} (local.tee $${counter.name} ${sub(counter.get, i32(1))}))`;
    return `(loop ${label} ${body.join('\n')} ${next})`;
  }

  /** Runs `body` `counter` times, and counts `counter` down to 0. */
  repeat(counter: Local, body: Code[]): Code {
    return when(counter.get, [this.countDown(counter, body)]);
  }

  /** Runs `body`, which changes `value`, while `value` is below `limit`. */
  whileBelow(value: Local, limit: Local, body: Code[]): Code {
    const label = `$again${this.labels++}`;
    return when(isBelow(value.get, limit.get), [
      `(loop ${label} ${body.join('\n')} (br_if ${label} ${isBelow(value.get, limit.get)}))`,
    ]);
  }

  private local(name: string, type: string): Local {
    this.declared.push(`(local $${name} ${type})`);
    return localOf(name);
  }
}

const localOf = (name: string): Local => ({
  name,
  get: `(local.get $${name})`,
  set: (value) => `(local.set $${name} ${value})`,
});

/** A parameter of another type than i32. */
interface Float<Name extends string> {
  name: Name;
  type: 'f32';
}

export const f32 = <Name extends string>(name: Name): Float<Name> => ({ name, type: 'f32' });

/** A function that is exported by its name. Parameters are i32 by default. `write` returns the statements. */
export function functionOf<Name extends string>(
  name: string,
  parameters: readonly (Name | Float<Name>)[],
  write: (parameters: Record<Name, Local>, scope: Scope) => Code[],
): Code {
  const scope = new Scope();
  const typed = parameters.map((one) => (typeof one === 'string' ? { name: one, type: 'i32' } : one));
  const given = Object.fromEntries(typed.map((one) => [one.name, localOf(one.name)])) as Record<Name, Local>;
  const body = write(given, scope);
  const head = typed.map((one) => `(param $${one.name} ${one.type})`).join(' ');
  return `(func $${name} (export "${name}") ${head}\n${scope.declared.join(' ')}\n${body.join('\n')})`;
}

export const call = (name: string, ...values: Code[]): Code => `(call $${name} ${values.join(' ')})`;

export const moduleOf = (functions: readonly Code[]): Code =>
  `(module (import "tfjs" "memory" (memory 0))\n${functions.join('\n')})`;
