import * as React from 'react';

import { Panel } from '../shared/panel';
import type { Hints } from '../shared/words';
import { findBasePath, loadSettings, type Settings } from './settings';
import { newTransport } from './transport';

const hints: Hints = {
  noToken:
    'The console sends your token for the API server. evictrail accepts it if it runs with --auth-api-tokens=all.',
  forbidden:
    'The console did not let the question through. Sign in to the console again; if that does not help, ' +
    'ask its administrator.',
  unreachable:
    'Check that evictrail runs, that the ConsolePlugin evictrail names its service, and that its network policy ' +
    'admits the console.',
};

/** What the console hands to a tab: the object on whose page it is. */
interface TabProps {
  readonly obj?: { readonly metadata?: { readonly namespace?: string; readonly name?: string } };
}

/** The tab on the pages of VirtualMachines and VirtualMachineInstances. */
export default function Tab({ obj }: TabProps): React.ReactElement | null {
  const basePath = findBasePath();
  const ask = React.useMemo(() => newTransport(basePath), [basePath]);
  const settings = useSettings(basePath);
  const { namespace, name } = obj?.metadata ?? {};
  if (!namespace || !name || !settings) return null;
  return (
    <div style={{ padding: '1rem 1.5rem' }}>
      <h2 style={{ fontSize: '1.25rem', fontWeight: 600, margin: 0 }}>evictrail</h2>
      <Panel
        vm={{ namespace, name }}
        ask={ask}
        cluster={settings.cluster}
        publicURL={settings.publicURL}
        hints={hints}
        headings="h3"
      />
    </div>
  );
}

/** Returns the settings once they are loaded. */
function useSettings(basePath: string): Settings | undefined {
  const [settings, setSettings] = React.useState<Settings>();
  React.useEffect(() => {
    let current = true;
    void loadSettings(basePath).then(loaded => {
      if (current) setSettings(loaded);
    });
    return () => {
      current = false;
    };
  }, [basePath]);
  return settings;
}
