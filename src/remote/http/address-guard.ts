/** Addresses that only a host named by the operator may have: loopback, private, link-local and reserved ones (RFC 6890). */
import { BlockList, isIP } from 'node:net';

const NOT_PUBLIC = new BlockList();
for (const subnet of [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
  '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4',
  // With the prefixes that carry an IPv4 address: NAT64, 6to4 and Teredo.
  '::/96 ::ffff:0:0:0/96 fec0::/10 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:db8::/32 2002::/16 fc00::/7 fe80::/10 ff00::/8',
].flatMap((line) => line.split(' '))) {
  const [address, bits] = subnet.split('/') as [string, string];
  NOT_PUBLIC.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** True for an address that anybody can reach. IPv4 addresses in IPv6 form (::ffff:0:0/96) count as IPv4. */
export function isPublicAddress(address: string): boolean {
  const kind = isIP(address);
  return kind !== 0 && !NOT_PUBLIC.check(address, kind === 6 ? 'ipv6' : 'ipv4');
}

/** The address of a URL whose host is a number, without brackets; undefined for a name. */
export function literalAddress({ hostname }: URL): string | undefined {
  const text = hostname.replace(/^\[|\]$/g, '');
  return isIP(text) === 0 ? undefined : text;
}
