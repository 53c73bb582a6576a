/** Hosts and addresses that may be fetched from. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkUrl, isPublicAddress, publicLookup, withoutSecrets } from '../../src/remote/hosts.js';

const codeOf = (work: () => unknown) => {
  try {
    work();
    return 'allowed';
  } catch (error) {
    return (error as { code: string }).code;
  }
};

test('addresses that only this machine or its network can reach are not public', () => {
  const refused =
    '127.0.0.1 127.9.9.9 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 255.255.255.255 ::1 :: fe80::1 fd00:ec2::254 ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1 2002:7f00:1::';
  for (const address of refused.split(' ')) assert.equal(isPublicAddress(address), false, address);
  for (const address of '8.8.8.8 172.15.0.1 172.32.0.1 100.63.0.1 2606:4700::1111 ::ffff:8.8.8.8'.split(' '))
    assert.equal(isPublicAddress(address), true, address);
});

test('forms of loopback addresses in URLs are refused before a request', () => {
  const policy = { hosts: [], anyPublic: true };
  for (const host of '127.0.0.1 2130706433 0x7f.1 0177.0.0.1 [::1] [::ffff:127.0.0.1] 169.254.169.254 [fd00:ec2::254]'.split(
    ' ',
  ))
    assert.equal(
      codeOf(() => checkUrl(`https://${host}/x`, policy)),
      'TW_REMOTE_ADDRESS_NOT_ALLOWED',
      host,
    );
});

test('a name with a private address is refused when it is resolved', async () => {
  const error = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
    publicLookup('localhost', {}, (error) => resolve(error));
  });
  assert.equal(error?.code, 'TW_REMOTE_ADDRESS_NOT_ALLOWED');
});

test('a server fetches only from listed hosts', () => {
  const policy = {
    hosts: ['a.example', 'b.example:8443', '*.c.example', '127.0.0.1:9000'],
    anyPublic: false,
  };
  const cases: Record<string, string> = {
    'https://a.example/x': 'allowed',
    'http://a.example/x': 'allowed',
    'https://A.EXAMPLE/x': 'allowed',
    'https://a.example:444/x': 'TW_REMOTE_HOST_NOT_ALLOWED',
    'https://b.example:8443/x': 'allowed',
    'https://b.example/x': 'TW_REMOTE_HOST_NOT_ALLOWED',
    'https://x.c.example/x': 'allowed',
    'https://c.example/x': 'TW_REMOTE_HOST_NOT_ALLOWED',
    'https://xc.example/x': 'TW_REMOTE_HOST_NOT_ALLOWED',
    'http://x.c.example/x': 'TW_REMOTE_BAD_URL',
    'https://a.example.evil/x': 'TW_REMOTE_HOST_NOT_ALLOWED',
    'https://evil/?a.example': 'TW_REMOTE_HOST_NOT_ALLOWED',
    'http://127.0.0.1:9000/x': 'allowed',
    'http://127.0.0.1:9001/x': 'TW_REMOTE_HOST_NOT_ALLOWED',
    'https://user:secret@a.example/x': 'TW_REMOTE_BAD_URL',
    'file:///etc/passwd': 'TW_REMOTE_BAD_URL',
    'ftp://a.example/x': 'TW_REMOTE_BAD_URL',
    'no url': 'TW_REMOTE_BAD_URL',
  };
  for (const [url, expected] of Object.entries(cases))
    assert.equal(
      codeOf(() => checkUrl(url, policy)),
      expected,
      url,
    );
});

test('messages hold no signatures and passwords', () => {
  assert.equal(
    withoutSecrets('https://u:p@h.example/a.tif?sig=abc&se=2024&X-Amz-Signature=1&band=2'),
    'https://h.example/a.tif?band=2',
  );
});
