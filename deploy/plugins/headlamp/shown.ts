import * as React from 'react';

/** How many sections are on the page. */
let sections = 0;
const listeners = new Set<() => void>();

function changeSections(by: number): void {
  sections += by;
  listeners.forEach(listener => listener());
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Counts the section that calls it for as long as it is on the page. */
export function useCountedSection(): void {
  React.useEffect(() => {
    changeSections(1);
    return () => changeSections(-1);
  }, []);
}

/** Reports whether the page has a section. */
export function useHasSection(): boolean {
  return React.useSyncExternalStore(subscribe, () => sections > 0);
}
