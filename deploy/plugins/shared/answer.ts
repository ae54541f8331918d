// What evictrail answers about a VM, as far as the panel shows it. Source: Answer, NotAnswer and the view loops in
// api/openapi.yaml.

export interface VM {
  readonly namespace: string;
  readonly name: string;
}

/** What an answer rests on. */
interface Rests {
  readonly as_of: string;
  readonly semantics: string;
  readonly policy?: string;
  readonly recorder?: { readonly state: string; readonly why: readonly string[] | null; readonly replayed?: boolean };
  readonly not_observed?: readonly Gap[] | null;
}

export interface Gap {
  readonly source: string;
  readonly opened_at: string;
  readonly closed_at?: string;
  readonly cause: string;
}

export interface Fact {
  readonly event_id: string;
  readonly at: string;
  readonly sentence: string;
}

export interface Brief {
  readonly status: string;
  readonly asked_by?: string;
  readonly attempts?: string;
  readonly outlook?: string;
  readonly verdict?: string;
}

export interface WhyAnswer extends Rests {
  readonly brief?: Brief;
  readonly paragraph: string;
  readonly attempts?: readonly { readonly text: string }[];
  readonly attempts_older?: number;
  readonly advice?: string;
  readonly evidence: readonly Fact[] | null;
}

export interface WhyNotAnswer extends Rests {
  readonly paragraph: string;
  readonly advice?: string;
}

export interface Loop {
  readonly loop_id: string;
  readonly summary: string;
  readonly advice?: string;
}
