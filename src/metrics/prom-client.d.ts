/** prom-client has no types for the modules behind `collectDefaultMetrics`. */
declare module 'prom-client/lib/metrics/*.js' {
  import type { Registry } from 'prom-client';

  const collect: (registry: Registry) => void;
  export default collect;
}
