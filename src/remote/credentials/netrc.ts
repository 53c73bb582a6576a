/** Reads `.netrc`, the file of user names and passwords of curl, GDAL and NASA's tools. */

export interface Login {
  login: string;
  password: string;
}

/** Returns the logins by machine. Ignores `default`, which would send a password to any host, and macros. */
export function parseNetrc(text: string): Map<string, Login> {
  const logins = new Map<string, Login>();
  // A macro ends with an empty line.
  const words = text
    .replace(/^\s*macdef\b[\s\S]*?(?:\n\s*\n|$(?![\s\S]))/gm, '')
    .replace(/^\s*#.*$/gm, '')
    .split(/\s+/)
    .filter(Boolean);
  let machine: string | undefined;
  let entry: Partial<Login> = {};
  const end = () => {
    const { login, password } = entry;
    if (machine !== undefined && login !== undefined && password !== undefined && !logins.has(machine))
      logins.set(machine, { login, password });
  };
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    if (word === 'machine' || word === 'default') {
      end();
      entry = {};
      machine = word === 'machine' ? words[++i]?.toLowerCase() : undefined;
    } else if (word === 'login' || word === 'password') entry[word] = words[++i];
    else if (word === 'account') i++;
  }
  end();
  return logins;
}
