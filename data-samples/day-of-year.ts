/** 1 for the first of January (UTC). */
export function dayOfYear(datetime: string): number {
  const at = new Date(datetime);
  return Math.floor((at.getTime() - Date.UTC(at.getUTCFullYear(), 0, 1)) / 86_400_000) + 1;
}
