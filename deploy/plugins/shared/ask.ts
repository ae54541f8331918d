import type { Loop, VM, WhyAnswer, WhyNotAnswer } from './answer';

/** What came back for a request. Status 0: nothing did, and the body says why. */
export interface Reply {
  readonly status: number;
  readonly body: string;
}

/** Sends a GET to a path of evictrail, such as /api/v1/loops, by the way that a console has. It never rejects. */
export type Transport = (path: string) => Promise<Reply>;

/** What came of asking about a VM. */
export type Outcome =
  | {
      readonly kind: 'answered';
      readonly why: WhyAnswer;
      readonly whyNot: WhyNotAnswer;
      readonly loops: readonly Loop[];
    }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'several'; readonly clusters: readonly string[] }
  /** By evictrail itself, or by what stands before it. */
  | { readonly kind: 'refused'; readonly by: 'evictrail' | 'cluster'; readonly status: number; readonly detail: string }
  /** evictrail answered that it cannot answer. */
  | { readonly kind: 'failed'; readonly status: number; readonly detail: string }
  | { readonly kind: 'unreachable'; readonly status: number; readonly detail: string };

/** A problem document (RFC 9457), which is how evictrail says what is wrong. */
interface Problem {
  readonly type?: string;
  readonly status: number;
  readonly detail: string;
  readonly clusters?: readonly string[];
}

const unknownVM = 'urn:evictrail:problem:unknown';
const severalClusters = 'urn:evictrail:problem:several-clusters';

/** How much of a text that is not evictrail's is shown. */
const detailLength = 300;

/** Asks why a VM moved, why it does not move and why it does not stop. */
export async function askAboutVM(ask: Transport, vm: VM, cluster: string): Promise<Outcome> {
  const base = `/api/v1/vms/${encodeURIComponent(vm.namespace)}/${encodeURIComponent(vm.name)}`;
  const inCluster = cluster ? { cluster } : undefined;
  const query = inCluster ? `?${new URLSearchParams(inCluster)}` : '';
  const ofLoops = new URLSearchParams({ open: 'true', vm: `${vm.namespace}/${vm.name}`, ...inCluster });
  // One after the other: a caller that is refused, or a VM that is not known, costs evictrail one question.
  const why = await askOne<WhyAnswer>(ask, `${base}/why${query}`, isObject);
  if (why.failure) return why.failure;
  const whyNot = await askOne<WhyNotAnswer>(ask, `${base}/why-not${query}`, isObject);
  if (whyNot.failure) return whyNot.failure;
  const loops = await askOne<Loop[]>(ask, `/api/v1/loops?${ofLoops}`, Array.isArray);
  if (loops.failure) return loops.failure;
  return { kind: 'answered', why: why.answer, whyNot: whyNot.answer, loops: loops.answer };
}

type Asked<T> = { readonly answer: T; readonly failure?: undefined } | { readonly failure: Outcome };

async function askOne<T>(ask: Transport, path: string, isAnswer: (value: unknown) => boolean): Promise<Asked<T>> {
  const reply = await ask(path);
  const value = parseJSON(reply.body);
  if (reply.status === 200 && isAnswer(value)) return { answer: value as T };
  return { failure: explainReply(reply, value) };
}

/** Says what a reply means that is no answer. */
function explainReply(reply: Reply, value: unknown): Outcome {
  const { status } = reply;
  if (!isProblem(value)) {
    const detail = shortenText(reply.body);
    if (status === 401 || status === 403) return { kind: 'refused', by: 'cluster', status, detail };
    return { kind: 'unreachable', status, detail };
  }
  const { detail } = value;
  if (value.type === unknownVM) return { kind: 'unknown' };
  if (value.type === severalClusters) return { kind: 'several', clusters: value.clusters ?? [] };
  if (status === 401 || status === 403) return { kind: 'refused', by: 'evictrail', status, detail };
  return { kind: 'failed', status, detail };
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isProblem(value: unknown): value is Problem {
  const problem = value as Partial<Problem>;
  return isObject(value) && typeof problem.detail === 'string' && typeof problem.status === 'number';
}

function parseJSON(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Shortens a text of another program; of a page of HTML nothing is left. */
function shortenText(text: string): string {
  const plain = text.trim();
  if (plain.startsWith('<')) return '';
  return plain.length > detailLength ? `${plain.slice(0, detailLength)}…` : plain;
}

/** Returns the address of evictrail's page of a VM, or nothing where no usable address is configured. */
export function findPage(publicURL: string | undefined, vm: VM, cluster: string): string | undefined {
  let page: URL;
  try {
    page = new URL(publicURL ?? '');
  } catch {
    return undefined;
  }
  if (page.protocol !== 'https:' && page.protocol !== 'http:') return undefined;
  const path = `vms/${encodeURIComponent(vm.namespace)}/${encodeURIComponent(vm.name)}`;
  page.pathname = `${page.pathname.replace(/\/+$/, '')}/${path}`;
  page.search = cluster ? `?${new URLSearchParams({ cluster })}` : '';
  page.hash = '';
  return page.href;
}
