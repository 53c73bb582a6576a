import { it } from 'node:test';
import { beforeTests } from '../support/before-tests.js';
import { engineContract, reasonToSkip } from './engine-contract.js';
import { selfTestContract } from './self-test-contract.js';

const reason = await beforeTests(reasonToSkip('wasm-onednn'));
if (reason === undefined) {
  engineContract('wasm-onednn');
  selfTestContract('wasm-onednn');
} else it('training engine wasm-onednn', { skip: reason });
