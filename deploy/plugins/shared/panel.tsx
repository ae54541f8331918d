import * as React from 'react';

import type { Fact, Loop, VM, WhyAnswer } from './answer';
import { askAboutVM, findPage, type Outcome, type Transport } from './ask';
import { describeOutcome, formatMoment, listLimits, listLines, splitAdvice, type Hints } from './words';

/** How many facts are shown below an answer, the latest: as many as `evictrail why` prints. */
const factsShown = 20;

export interface PanelProps {
  readonly vm: VM;
  /** How evictrail is asked. Another function means another evictrail: it is asked again. */
  readonly ask: Transport;
  /** The cluster to ask about; empty where evictrail records one. */
  readonly cluster: string;
  /** Where people open evictrail in a browser, for a link to the VM's page. */
  readonly publicURL?: string;
  readonly hints: Hints;
  /** Of which level the headings of the panel are. */
  readonly headings: 'h2' | 'h3';
}

/** Shows what evictrail answers about a VM. Colors and fonts are those of the console around it. */
export function Panel(props: PanelProps): React.ReactElement {
  const { namespace, name } = props.vm;
  const [chosen, setChosen] = React.useState('');
  const [outcome, askAgain] = useOutcome(props.ask, namespace, name, chosen || props.cluster);
  React.useEffect(() => setChosen(''), [props.ask, namespace, name, props.cluster]);
  const page = findPage(props.publicURL, props.vm, chosen || props.cluster);
  const title = `${namespace}/${name}`;
  return (
    <div data-evictrail={outcome?.kind ?? 'loading'} style={styles.panel}>
      <div aria-live="polite">
        {outcome === undefined && <p style={styles.text}>Asking evictrail about {title} …</p>}
        {outcome && outcome.kind !== 'answered' && (
          <Notice outcome={outcome} vm={title} hints={props.hints} choose={setChosen} />
        )}
      </div>
      {outcome?.kind === 'answered' && <Answered {...outcome} headings={props.headings} />}
      <p style={styles.actions}>
        {page && (
          <a href={page} target="_blank" rel="noreferrer" style={styles.link}>
            {outcome?.kind === 'answered' ? 'History and pictures in evictrail' : 'Open evictrail'}
          </a>
        )}
        {outcome && (
          <button type="button" onClick={askAgain} style={styles.button}>
            Ask again
          </button>
        )}
      </p>
    </div>
  );
}

/** Asks about a VM, and again when asked to. What comes for an earlier question is dropped. */
function useOutcome(
  ask: Transport,
  namespace: string,
  name: string,
  cluster: string,
): [Outcome | undefined, () => void] {
  const [outcome, setOutcome] = React.useState<Outcome>();
  const [round, setRound] = React.useState(0);
  React.useEffect(() => {
    let current = true;
    setOutcome(undefined);
    void askAboutVM(ask, { namespace, name }, cluster).then(came => {
      if (current) setOutcome(came);
    });
    return () => {
      current = false;
    };
  }, [ask, namespace, name, cluster, round]);
  return [outcome, React.useCallback(() => setRound(before => before + 1), [])];
}

interface NoticeProps {
  readonly outcome: Exclude<Outcome, { kind: 'answered' }>;
  readonly vm: string;
  readonly hints: Hints;
  readonly choose: (cluster: string) => void;
}

/** Says why there is no answer, and what to do. */
function Notice({ outcome, vm, hints, choose }: NoticeProps): React.ReactElement {
  const message = describeOutcome(outcome, vm, hints);
  return (
    <>
      <p style={styles.title}>{message.title}</p>
      {message.texts.map(text => (
        <p key={text} style={styles.text}>
          {text}
        </p>
      ))}
      {outcome.kind === 'several' && (
        <p style={styles.actions}>
          {outcome.clusters.map(cluster => (
            <button key={cluster} type="button" onClick={() => choose(cluster)} style={styles.button}>
              {cluster}
            </button>
          ))}
        </p>
      )}
    </>
  );
}

type AnsweredProps = Extract<Outcome, { kind: 'answered' }> & Pick<PanelProps, 'headings'>;

function Answered({ why, whyNot, loops, headings }: AnsweredProps): React.ReactElement {
  return (
    <>
      <Section as={headings} title="Why did it move?">
        {why.brief ? <Lines why={why} /> : <p style={styles.text}>{why.paragraph}</p>}
        <Attempts why={why} />
        <Advice text={why.advice} />
      </Section>
      <Section as={headings} title="Why does it not move?">
        <p style={styles.text}>{whyNot.paragraph}</p>
        {whyNot.advice !== why.advice && <Advice text={whyNot.advice} />}
      </Section>
      <Section as={headings} title="Why does it not stop?">
        <Loops loops={loops} said={[why.advice, whyNot.advice]} />
      </Section>
      <Section as={headings} title="What this rests on">
        <Grounds why={why} />
      </Section>
    </>
  );
}

interface SectionProps {
  readonly as: 'h2' | 'h3';
  readonly title: string;
  readonly children: React.ReactNode;
}

function Section({ as: Heading, title, children }: SectionProps): React.ReactElement {
  return (
    <section style={styles.section}>
      <Heading style={styles.heading}>{title}</Heading>
      {children}
    </section>
  );
}

function Lines({ why }: { readonly why: WhyAnswer }): React.ReactElement {
  return (
    <dl style={styles.lines}>
      {why.brief &&
        listLines(why.brief).map(({ label, text }) => (
          <React.Fragment key={label}>
            <dt style={styles.label}>{label}</dt>
            <dd style={styles.value}>{text}</dd>
          </React.Fragment>
        ))}
    </dl>
  );
}

function Attempts({ why }: { readonly why: WhyAnswer }): React.ReactElement | null {
  const attempts = why.attempts ?? [];
  if (attempts.length === 0) return null;
  return (
    <details style={styles.details}>
      <summary style={styles.summary}>Attempts, newest first</summary>
      <ul style={styles.list}>
        {attempts.map(({ text }) => (
          <li key={text}>{text}</li>
        ))}
        {why.attempts_older ? <li>{why.attempts_older} older</li> : null}
      </ul>
    </details>
  );
}

function Advice({ text }: { readonly text?: string }): React.ReactElement | null {
  if (!text) return null;
  return (
    <div>
      <p style={styles.title}>What to do</p>
      {splitAdvice(text).map((part, i) =>
        part.pasted ? (
          <pre key={i} style={styles.pasted}>
            <code>{part.text}</code>
          </pre>
        ) : (
          <p key={i} style={styles.text}>
            {part.text}
          </p>
        ),
      )}
    </div>
  );
}

function Loops(props: {
  readonly loops: readonly Loop[];
  readonly said: readonly (string | undefined)[];
}): React.ReactElement {
  if (props.loops.length === 0) return <p style={styles.text}>No open loops of this VM.</p>;
  return (
    <>
      {props.loops.map(loop => (
        <div key={loop.loop_id}>
          <p style={styles.text}>{loop.summary}</p>
          {!props.said.includes(loop.advice) && <Advice text={loop.advice} />}
        </div>
      ))}
    </>
  );
}

/** Shows for which moment an answer speaks, what may be missing in it, its rules and its facts. */
function Grounds({ why }: { readonly why: WhyAnswer }): React.ReactElement {
  return (
    <>
      {listLimits(why).map(limit => (
        <p key={limit} style={styles.title}>
          {limit}
        </p>
      ))}
      <p style={styles.text}>
        As of {formatMoment(why.as_of)}. {why.policy && `Settings in force: ${why.policy}. `}Rules: {why.semantics}
      </p>
      <Facts facts={why.evidence ?? []} />
    </>
  );
}

function Facts({ facts }: { readonly facts: readonly Fact[] }): React.ReactElement | null {
  if (facts.length === 0) return null;
  const shown = facts.slice(-factsShown);
  return (
    <details style={styles.details}>
      <summary style={styles.summary}>
        {shown.length < facts.length
          ? `Evidence, the latest ${shown.length} of ${facts.length} facts`
          : `Evidence (${facts.length})`}
      </summary>
      <ul style={styles.list}>
        {shown.map(fact => (
          <li key={fact.event_id}>
            <time dateTime={fact.at}>{formatMoment(fact.at)}</time> {fact.sentence}
          </li>
        ))}
      </ul>
    </details>
  );
}

const styles = {
  panel: { lineHeight: 1.5, overflowWrap: 'anywhere', maxWidth: '72rem', paddingBottom: '1rem' },
  section: { marginTop: '1.25rem' },
  heading: { fontSize: '1.1em', fontWeight: 600, margin: '0 0 0.25rem' },
  lines: { display: 'grid', gridTemplateColumns: 'max-content minmax(0, 1fr)', gap: '0.25rem 1rem', margin: 0 },
  label: { fontWeight: 600 },
  value: { margin: 0 },
  text: { margin: '0.25rem 0' },
  title: { margin: '0.5rem 0 0.25rem', fontWeight: 600 },
  details: { margin: '0.5rem 0' },
  summary: { cursor: 'pointer' },
  list: { margin: '0.25rem 0', paddingLeft: '1.5rem', listStyle: 'disc' },
  pasted: {
    margin: '0.25rem 0',
    padding: '0.5rem 0.75rem',
    border: '1px solid rgba(128, 128, 128, 0.4)',
    borderRadius: '4px',
    background: 'rgba(128, 128, 128, 0.1)',
    color: 'inherit',
    font: '0.9em/1.5 ui-monospace, monospace',
    whiteSpace: 'pre-wrap',
  },
  actions: { display: 'flex', flexWrap: 'wrap', gap: '0.75rem', alignItems: 'center', margin: '1.25rem 0 0' },
  link: { color: 'inherit', textDecoration: 'underline' },
  button: {
    font: 'inherit',
    color: 'inherit',
    background: 'transparent',
    border: '1px solid currentColor',
    borderRadius: '4px',
    padding: '0.25rem 0.75rem',
    cursor: 'pointer',
  },
} satisfies Record<string, React.CSSProperties>;
