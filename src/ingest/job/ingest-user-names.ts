/** Replaces paths that only the server knows by the names that users know, in messages and results. */
export class UserNames {
  /** Innermost first. */
  private names: [path: string, name: string][] = [];

  /** Adds the name of a file or folder. A folder within another one must be added before it, or with `first`. */
  add(path: string, name: string, first = false): void {
    if (first) this.names.unshift([path, name]);
    else this.names.push([path, name]);
  }

  /** Forgets the names of a folder and of all files in it. */
  forget(folder: string): void {
    this.names = this.names.filter(([path]) => !path.startsWith(folder));
  }

  replaceIn(text: string): string {
    return this.names.reduce((named, [path, name]) => named.replaceAll(path, () => name), text);
  }
}
