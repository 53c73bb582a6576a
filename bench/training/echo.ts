/**
 * Measures a network line. `node echo.js serve HOST` answers; `node echo.js ask HOST PORT` prints the median round-trip time of single
 * bytes and the rate of one long message, as JSON.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { median } from '../support/bench.js';

const PINGS = 200;
const BULK = 32 << 20;

export interface LineFigures {
  /** Round-trip time in seconds. */
  roundTrip: number;
  /** Bits per second of a long message. */
  rate: number;
}

const [role, host, port] = process.argv.slice(2);
if (role === 'serve') {
  const server = createServer({ noDelay: true }, (socket) => {
    let came = 0;
    socket.on('data', ({ length }) => {
      came += length;
      if (came <= PINGS || came === PINGS + BULK) socket.write('.');
    });
  });
  server.listen(0, host, () => console.log((server.address() as AddressInfo).port));
} else {
  const socket = connect({ host: host!, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  const timed = async (message: Uint8Array) => {
    const begun = performance.now();
    socket.write(message);
    await once(socket, 'data');
    return (performance.now() - begun) / 1e3;
  };
  const times: number[] = [];
  for (let i = 0; i < PINGS; i++) times.push(await timed(new Uint8Array(1)));
  const rate = (8 * BULK) / (await timed(new Uint8Array(BULK)));
  console.log(JSON.stringify({ roundTrip: median(times), rate } satisfies LineFigures));
  socket.destroy();
}
