/**
 * Colour ramps for single values: those of Matplotlib (CC0; cividis by Nuñez, Anderton & Renslow 2018; greys and rdylgn after
 * ColorBrewer), as colours at equal distances with straight lines between them, which differs from the full tables of 256
 * by at most 6 of 255.
 */

/** RRGGBB of each stop, from the lowest value on. */
const STOPS: Record<string, string> = {
  viridis:
    '44015445085b470f62471669481d6f482374472a7946307d453681433c844142863e48883c4d8a3a538b37588c355d8c' +
    '32628d30678d2e6c8e2c718e2a768e287a8e267f8e24848d23898d218d8c1f928c1e978a1e9b891ea08720a58523a982' +
    '28ae7f2eb27c35b7783dbb7445bf6f4fc36959c76464cb5d70ce567cd24f88d54795d73fa2da37afdc2ebdde26cae01e' +
    'd7e219e4e318f1e51cfde724',
  magma:
    '00000301010b04041509071f0e0a2a140d351a104120114d281159301065390f6e420f744a107952127c5a157e61187f' +
    '691c80711f81792281812581892881912a80992d7fa12f7ea9327cb1357ab93778c23a75ca3e72d1426ed9466ae04b66' +
    'e65162ec585ff0605df4685bf7715bf97b5dfb8460fc8e63fd9768fda16efeaa74feb37bfebc82fec689fdcf92fdd89a' +
    'fde1a3fceaacfcf3b5fbfcbf',
  inferno:
    '00000301010b0403160906210f092d160b391d0c45260b502e0a5a370961400966480b6a500d6c58106d60136e68166e' +
    '70196e781c6d801f6b88216a902468982765a02a62a72d5faf315bb73456be3852c53d4dcc4148d24742d94d3dde5337' +
    'e45a31e8612bed6825f0701ef37918f68111f88a0bfa9306fb9d06fba60bfbb014fbb91ef9c32af8cd37f5d745f3e056' +
    'f1e968f1f27df5f891fcfea4',
  plasma:
    '0c07861b068c2505912f049538049940039c49029f5101a25901a46100a66800a77000a87801a87f03a78607a68e0ca4' +
    '9511a19b179ea21c9aa82296ae2791b42d8db93388be3883c33e7fc8447acd4975d14f71d6556dda5a68de6064e26660' +
    'e56c5be97257ec7853ef7e4ef2854af58b46f79241f9993dfaa039fca735fdaf31fdb62dfdbe29fdc626fcce25fad624' +
    'f8df24f5e726f2f026eff821',
  cividis:
    '00224d00265500295e002c6700307008337016366f1f3a6e273d6d2e416c34446c39486c3f4b6b444f6b49526b4e566c' +
    '52596c575d6d5b606e60646e64676f686b716d6e727172737575757979777e7d788380788784788c8878918c77968f77' +
    '9b9376a09775a59b73aa9f72afa370b4a76fb9ab6dbeb06ac4b468c9b865cebc62d4c15ed9c55adfca56e4ce51ead34c' +
    'efd846f5dc3ffbe136fde737',
  greys: 'fffffff0f0f0d9d9d9bdbdbd969696737373525252252525000000',
  rdylgn: 'a50026d73027f46d43fdae61fee08bffffbfd9ef8ba6d96a66bd631a9850006837',
  terrain:
    '3333992255bb1177dd0099ff00b2b200cc6633d67066e07a99eb85ccf58fffff99e6de8bccbe7db39d70997d62805c54' +
    '997d76b39d98ccbebbe6deddffffff',
};

export const COLORMAPS = Object.keys(STOPS);

/** 256 colours of 3 bytes; undefined for an unknown name. */
export function colormap(name: string): Uint8Array | undefined {
  const text = Object.hasOwn(STOPS, name) ? STOPS[name] : undefined;
  if (text === undefined) return undefined;
  const stops = Buffer.from(text, 'hex');
  const last = stops.length / 3 - 1;
  return Uint8Array.from({ length: 768 }, (_, i) => {
    const place = (Math.floor(i / 3) / 255) * last;
    const stop = Math.min(last - 1, Math.floor(place));
    const a = stops[3 * stop + (i % 3)];
    const b = stops[3 * stop + 3 + (i % 3)];
    return Math.round(a + (b - a) * (place - stop));
  });
}
