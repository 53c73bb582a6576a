import { it } from 'node:test';
import { beforeTests } from '../support/before-tests.js';
import { engineContract, reasonToSkip } from './engine-contract.js';
import { selfTestContract } from './self-test-contract.js';

const reason = await beforeTests(reasonToSkip('tfjs-node'));
if (reason === undefined) {
  engineContract('tfjs-node');
  selfTestContract('tfjs-node');
} else it('training engine tfjs-node', { skip: reason });
