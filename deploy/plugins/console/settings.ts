/** What the file settings.json beside the plugin says. */
export interface Settings {
  readonly cluster: string;
  readonly publicURL: string;
}

interface ConsoleWindow {
  /** What the console says of itself; its address may have a path. */
  readonly SERVER_FLAGS?: { readonly basePath?: string };
}

/** Returns the path of the console, with a slash at its end. */
export function findBasePath(): string {
  const path = (window as ConsoleWindow).SERVER_FLAGS?.basePath ?? '/';
  return path.endsWith('/') ? path : `${path}/`;
}

/** Loads the settings. Without the file, or with one that is no JSON, nothing is set. */
export async function loadSettings(basePath: string): Promise<Settings> {
  try {
    const response = await fetch(`${basePath}api/plugins/evictrail/settings.json`);
    const stored = response.ok ? ((await response.json()) as Partial<Record<keyof Settings, unknown>>) : {};
    return { cluster: readText(stored.cluster), publicURL: readText(stored.publicURL) };
  } catch {
    return { cluster: '', publicURL: '' };
  }
}

function readText(value: unknown): string {
  return typeof value === 'string' ? value.trim() : '';
}
