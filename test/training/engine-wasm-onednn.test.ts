import { it } from 'node:test';
import { engineContract, reasonToSkip } from './engine-contract.js';

const reason = await reasonToSkip('wasm-onednn');
if (reason === undefined) engineContract('wasm-onednn');
else it('training engine wasm-onednn', { skip: reason });
