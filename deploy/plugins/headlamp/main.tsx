import * as React from 'react';

import {
  CommonComponents,
  ConfigStore,
  registerDetailsViewSection,
  registerPluginSettings,
  type KubeObject,
} from '@kinvolk/headlamp-plugin/lib';

import { Panel } from '../shared/panel';
import type { Hints } from '../shared/words';
import { findServiceProxy, readSettings, type Settings } from './settings';
import { SettingsForm } from './settingsform';
import { newTransport } from './transport';

/** The name in package.json, by which Headlamp finds the settings. */
const pluginName = 'evictrail';

const kinds = ['VirtualMachine', 'VirtualMachineInstance'];

const useStored = new ConfigStore<Partial<Settings>>(pluginName).useConfig();

const hints: Hints = {
  noToken:
    'The API server does not pass your token on to services, so evictrail cannot know you here. Open evictrail’s own page and sign in, ' +
    'or ask its administrator for an evictrail that runs with --auth=none behind a network policy, where rights on services/proxy decide.',
  forbidden: 'You need the right to get services/proxy of evictrail’s service. Ask an administrator of the cluster.',
  unreachable: 'Check the namespace, the service and the port in the settings of this plugin, and that evictrail runs.',
};

/** A section of the details view of VMs; of other objects it is empty. */
function Section({ resource }: { resource: KubeObject | null }): React.ReactElement | null {
  const { apiVersion = '', kind = '', metadata } = resource?.jsonData ?? {};
  if (!apiVersion.startsWith('kubevirt.io/') || !kinds.includes(kind) || !metadata?.namespace || !metadata.name) return null;
  return <VMSection namespace={metadata.namespace} name={metadata.name} cluster={resource?.cluster} />;
}

function VMSection({ namespace, name, cluster }: { namespace: string; name: string; cluster?: string }): React.ReactElement {
  const settings = readSettings(useStored());
  const proxy = findServiceProxy(settings);
  const ask = React.useMemo(() => newTransport(proxy, cluster), [proxy, cluster]);
  return (
    <CommonComponents.SectionBox title="evictrail">
      <Panel vm={{ namespace, name }} ask={ask} cluster={settings.cluster} publicURL={settings.publicURL} hints={hints} />
    </CommonComponents.SectionBox>
  );
}

registerDetailsViewSection({ id: pluginName, section: Section });
registerPluginSettings(pluginName, SettingsForm, true);
