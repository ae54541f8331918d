import * as React from 'react';

import {
  CommonComponents,
  ConfigStore,
  registerDetailsViewHeaderAction,
  registerDetailsViewSection,
  registerPluginSettings,
  type KubeObject,
} from '@kinvolk/headlamp-plugin/lib';

import { Panel } from '../shared/panel';
import type { Hints } from '../shared/words';
import { findServiceProxy, readSettings, type Settings } from './settings';
import { SettingsForm } from './settingsform';
import { useCountedSection, useHasSection } from './shown';
import { newTransport } from './transport';

/** The name in package.json, by which Headlamp finds the settings. */
const pluginName = 'evictrail';

const kinds = ['VirtualMachine', 'VirtualMachineInstance'];

const useStored = new ConfigStore<Partial<Settings>>(pluginName).useConfig();

const hints: Hints = {
  noToken:
    'The API server does not pass your token on to services, so evictrail cannot know you here. ' +
    'Open evictrail’s own page and sign in, or ask its administrator for an evictrail that runs with --auth=none ' +
    'behind a network policy, where rights on services/proxy decide.',
  forbidden: 'You need the right to get services/proxy of evictrail’s service. Ask an administrator of the cluster.',
  unreachable: 'Check the namespace, the service and the port in the settings of this plugin, and that evictrail runs.',
};

/** A VM on whose page the plugin is. */
interface Target {
  readonly namespace: string;
  readonly name: string;
  /** The cluster in Headlamp. */
  readonly cluster?: string;
}

/** Returns the VM that an object is; nothing for other objects. */
function findTarget(resource: KubeObject | null): Target | undefined {
  const { apiVersion = '', kind = '', metadata } = resource?.jsonData ?? {};
  const isVM = apiVersion.startsWith('kubevirt.io/') && kinds.includes(kind);
  if (!isVM || !metadata?.namespace || !metadata.name) return undefined;
  return { namespace: metadata.namespace, name: metadata.name, cluster: resource?.cluster };
}

/** A section of the details views that have sections: those of plugins such as KubeVirt's. */
function Section({ resource }: { resource: KubeObject | null }): React.ReactElement | null {
  const target = findTarget(resource);
  return target ? <VMSection {...target} /> : null;
}

function VMSection(target: Target): React.ReactElement {
  useCountedSection();
  return (
    <CommonComponents.SectionBox title="evictrail">
      <VMPanel {...target} headings="h3" />
    </CommonComponents.SectionBox>
  );
}

/** A button in the header of a details view. Headlamp's own view of custom resources has buttons, but no sections. */
function HeaderAction({ item }: { item: KubeObject | null }): React.ReactElement | null {
  const target = findTarget(item);
  const hasSection = useHasSection();
  const [open, setOpen] = React.useState(false);
  if (!target || hasSection) return null;
  const { namespace, name } = target;
  return (
    <>
      <CommonComponents.ActionButton
        description="Why does it move? (evictrail)"
        icon="mdi:comment-question-outline"
        onClick={() => setOpen(true)}
      />
      <CommonComponents.Dialog open={open} onClose={() => setOpen(false)} title={`evictrail: ${namespace}/${name}`}>
        <div style={{ padding: '0 1.5rem 1rem', overflowY: 'auto' }}>
          <VMPanel {...target} headings="h2" />
        </div>
      </CommonComponents.Dialog>
    </>
  );
}

function VMPanel({ namespace, name, cluster, headings }: Target & { headings: 'h2' | 'h3' }): React.ReactElement {
  const settings = readSettings(useStored());
  const proxy = findServiceProxy(settings);
  const ask = React.useMemo(() => newTransport(proxy, cluster), [proxy, cluster]);
  return (
    <Panel
      vm={{ namespace, name }}
      ask={ask}
      cluster={settings.cluster}
      publicURL={settings.publicURL}
      hints={hints}
      headings={headings}
    />
  );
}

registerDetailsViewSection({ id: pluginName, section: Section });
registerDetailsViewHeaderAction({ id: pluginName, action: HeaderAction });
registerPluginSettings(pluginName, SettingsForm, true);
