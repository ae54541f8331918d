import { ApiProxy } from '@kinvolk/headlamp-plugin/lib';

import type { Reply, Transport } from '../shared/ask';

/**
 * Returns a transport through the service proxy of the API server.
 *
 * JSON is not asked for: of a refusal Headlamp would then keep the field "message" alone, which evictrail's have not.
 * A 401 may be evictrail's own, so it must not sign the user out of Headlamp.
 */
export function newTransport(serviceProxy: string, cluster?: string): Transport {
  return async path => {
    try {
      const response = await ApiProxy.request(
        serviceProxy + path,
        { isJSON: false, ...(cluster ? { cluster } : {}) },
        false,
      );
      return { status: response.status, body: await response.text() };
    } catch (error) {
      return readRefusal(error);
    }
  };
}

/** Reads an error of Headlamp, whose message is "STATUS TEXT - BODY". */
function readRefusal(error: unknown): Reply {
  const { status, message } = error as { status?: unknown; message?: unknown };
  const text = typeof message === 'string' ? message : String(error);
  const [, body] = /^[^-{]*? - ([^]*)$/.exec(text) ?? [];
  return { status: typeof status === 'number' ? status : 0, body: body ?? text };
}
