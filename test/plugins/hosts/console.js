// Stands in for the OpenShift console: it loads plugins by the console's own loader, shares React with them, and shows
// their tabs on the page of a resource.
import {
  isCodeRef,
  PluginLoader,
  PluginStore,
  PluginStoreProvider,
  useResolvedExtensions,
} from '@openshift/dynamic-plugin-sdk';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

const e = React.createElement;
const query = new URLSearchParams(location.search);
const resource = {
  apiVersion: 'kubevirt.io/v1',
  kind: query.get('kind') ?? 'VirtualMachine',
  metadata: { namespace: query.get('namespace'), name: query.get('name') },
};

window.SERVER_FLAGS = { basePath: '/' };

const loader = new PluginLoader({
  entryCallbackSettings: { name: '__load_plugin_entry__' },
  customDependencyResolutions: { '@console/pluginAPI': '4.22.0' },
  // What module federation shares: of each module its versions, each with a function that loads it.
  sharedScope: {
    react: { [React.version]: { get: async () => () => React, from: 'console', eager: false, loaded: 1 } },
  },
});
const store = new PluginStore({ loader, autoEnableLoadedPlugins: true });

const isTab = extension => extension.type === 'console.tab/horizontalNav' && isCodeRef(extension.properties.component);

function isOfResource({ properties: { model } }) {
  return `${model.group}/${model.version}` === resource.apiVersion && model.kind === resource.kind;
}

function Details() {
  const [extensions, resolved, errors] = useResolvedExtensions(isTab);
  if (errors.length > 0) throw errors[0];
  const tabs = resolved ? extensions.filter(isOfResource) : [];
  return e(
    React.Fragment,
    null,
    e('h1', null, resource.metadata.name),
    e(
      'nav',
      { 'aria-label': 'Tabs' },
      tabs.map(({ uid, properties: { page } }) => e('a', { key: uid, href: `#${page.href}` }, page.name)),
    ),
    resolved &&
      tabs.map(({ uid, properties: { component: Tab } }) =>
        e('div', { key: uid, className: 'tab' }, e(Tab, { obj: resource })),
      ),
    resolved && tabs.length === 0 && e('p', { id: 'no-tabs' }, 'No tabs of plugins.'),
  );
}

store.loadPlugin('/api/plugins/evictrail/plugin-manifest.json').then(() => {
  const [plugin] = store.getPluginInfo();
  if (plugin.status !== 'loaded') throw new Error(`${plugin.errorMessage}: ${plugin.errorCause}`);
  createRoot(document.querySelector('main')).render(e(PluginStoreProvider, { store }, e(Details)));
});
