import { advance, type Code, functionOf, i32, load, store, VECTOR } from './emit.js';

/** Adds the rows of x, of `groups` of four columns, to the float64 at `sums`. */
export function columnSums(): Code {
  return functionOf('columnSums', ['rows', 'groups', 'x', 'sums'], (p, scope) => {
    const [group, to, value] = [scope.i32('group'), scope.i32('to'), scope.v128('value')];
    const upper = `(i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 ${value.get} ${value.get})`;
    const addTo = (offset: number, two: Code) =>
      store(to.get, `(f64x2.add ${load(to.get, offset)} (f64x2.promote_low_f32x4 ${two}))`, offset);
    return [
      scope.countDown(p.rows, [
        group.set(p.groups.get),
        to.set(p.sums.get),
        scope.countDown(group, [
          value.set(load(p.x.get)),
          addTo(0, value.get),
          addTo(VECTOR, upper),
          advance(p.x, i32(VECTOR)),
          advance(to, i32(2 * VECTOR)),
        ]),
      ]),
    ];
  });
}
