import type { Transport } from '../shared/ask';

/** How long evictrail may take for an answer, in milliseconds. */
const patience = 30_000;

/**
 * Returns a transport through the console's proxy for the plugin, which adds the user's token.
 *
 * The fetch of the console's SDK is not used: a GET needs nothing that it adds, and it comes with the versions of React
 * and Redux of one release of the console.
 */
export function newTransport(basePath: string): Transport {
  return async path => {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), patience);
    try {
      const response = await fetch(`${basePath}api/proxy/plugin/evictrail/evictrail${path}`, {
        headers: { Accept: 'application/json' },
        signal: late.signal,
      });
      return { status: response.status, body: await response.text() };
    } catch (error) {
      return { status: 0, body: late.signal.aborted ? `No answer within ${patience / 1000} s.` : String(error) };
    } finally {
      clearTimeout(timer);
    }
  };
}
