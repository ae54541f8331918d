import type { Brief, Gap, WhyAnswer } from './answer';
import type { Outcome } from './ask';

/** A labelled line of an answer. */
export interface Line {
  readonly label: string;
  readonly text: string;
}

/** Returns the lines of a brief answer, labelled and in the order of `evictrail why`. */
export function listLines(brief: Brief): Line[] {
  const all: [string, string | undefined][] = [
    ['Status', brief.status],
    ['Asked by', brief.asked_by],
    ['Attempts', brief.attempts],
    ['Outlook', brief.outlook],
    ['Verdict', brief.verdict],
  ];
  return all.flatMap(([label, text]) => (text ? [{ label, text }] : []));
}

/** Writes a moment as evictrail does: 2026-11-21 00:45:10Z. */
export function formatMoment(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? at : `${time.toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** Says what may be missing in an answer: nothing where all was recorded. */
export function listLimits(answer: WhyAnswer): string[] {
  const limits: string[] = [];
  const { recorder } = answer;
  if (recorder && recorder.state !== 'recording' && !recorder.replayed) {
    const reason = recorder.why?.[0] ?? `The recorder is in the state "${humanize(recorder.state)}".`;
    limits.push(`${reason} What is shown may be incomplete.`);
  }
  return [...limits, ...(answer.not_observed ?? []).map(describeGap)];
}

function describeGap(gap: Gap): string {
  const until = gap.closed_at ? `to ${formatMoment(gap.closed_at)}` : 'until now';
  const cause = gapCauses.get(gap.cause) ?? humanize(gap.cause);
  return `Not observed: ${gap.source} from ${formatMoment(gap.opened_at)} ${until} (${cause}).`;
}

/** Causes of gaps that pages name by other words than their values. Source: gapReasons in trail/reason.go. */
const gapCauses = new Map([
  ['expired', 'watch expired'],
  ['relisted', 'watch broke'],
  ['overflow', 'too much at once'],
  ['corrupted', 'spool unreadable'],
  ['refused', 'refused by database'],
  ['database_rewound', 'database restored'],
]);

/** Writes a closed value for people. */
function humanize(value: string): string {
  return value.replaceAll('_', ' ');
}

/** What a console adds to a message: what to do about it there. */
export interface Hints {
  /** evictrail does not know the caller. */
  readonly noToken: string;
  /** The cluster refuses the request before it reaches evictrail. */
  readonly forbidden: string;
  readonly unreachable: string;
}

/** A heading, what happened, and what to do. */
export interface Message {
  readonly title: string;
  readonly texts: readonly string[];
}

/** Puts what came instead of an answer into words. */
export function describeOutcome(outcome: Exclude<Outcome, { kind: 'answered' }>, vm: string, hints: Hints): Message {
  switch (outcome.kind) {
    case 'unknown':
      return {
        title: `Nothing is recorded about ${vm}.`,
        texts: [
          'evictrail looked for a VM of this name and found none. ' +
            'It knows VMs that ran while their cluster was recorded, and shows those that you may see.',
        ],
      };
    case 'several':
      return {
        title: `${vm} is recorded in several clusters.`,
        texts: ['Choose the one that you mean, or name it in the settings of this plugin.'],
      };
    case 'refused':
      if (outcome.by === 'cluster') {
        return {
          title: `The cluster refused the question (${outcome.status}).`,
          texts: compact(outcome.detail, hints.forbidden),
        };
      }
      if (outcome.status === 401) {
        return {
          title: 'evictrail does not know who asks (401).',
          texts: compact(quote(outcome.detail), hints.noToken),
        };
      }
      return { title: 'evictrail does not show you this VM (403).', texts: compact(quote(outcome.detail)) };
    case 'failed':
      return { title: `evictrail cannot answer now (${outcome.status}).`, texts: compact(quote(outcome.detail)) };
    case 'unreachable': {
      const status = outcome.status > 0 ? ` (${outcome.status})` : '';
      return { title: `evictrail cannot be reached${status}.`, texts: compact(outcome.detail, hints.unreachable) };
    }
  }
}

function compact(...texts: string[]): string[] {
  return texts.filter(text => text !== '');
}

function quote(detail: string): string {
  return detail && `It says: “${detail}”`;
}

/** A part of an advice: prose, or lines that can be pasted. */
export interface AdvicePart {
  readonly pasted: boolean;
  readonly text: string;
}

/** Cuts an advice into prose and lines that can be pasted, which are indented. */
export function splitAdvice(advice: string): AdvicePart[] {
  const parts: { pasted: boolean; text: string }[] = [];
  for (const line of advice.split('\n')) {
    const pasted = line.startsWith(' ');
    const last = parts[parts.length - 1];
    if (pasted && last?.pasted) last.text += `\n${line.trim()}`;
    else parts.push({ pasted, text: line.trim() });
  }
  return parts;
}
