// Stands in for Headlamp: it hands the global pluginLib to plugins, evaluates each in a function of its own, and shows
// their sections on the page of a resource, and their settings.
//
// Source: frontend/src (plugin/index.ts, plugin/runPlugin.ts, lib/k8s/api/v1/clusterRequests.ts and
// components/DetailsViewSection; kubernetes-sigs/headlamp).
import * as React from 'react';
import { createRoot } from 'react-dom/client';
import * as ReactJSX from 'react/jsx-runtime';

const e = React.createElement;
const query = new URLSearchParams(location.search);
const cluster = 'main';

const sections = [];
const headerActions = [];
const settingsForms = new Map();

// Requests go to the API server of the cluster whose page is shown. A refusal rejects with its status, and with the
// status text and the body in the message; where JSON is expected, with the body's field "message" alone.
async function request(path, params = {}) {
  const { isJSON = true, cluster: named = cluster, ...rest } = params;
  const response = await fetch(`/clusters/${named}${path}`, { credentials: 'include', ...rest });
  if (response.ok) return isJSON ? response.json() : response;
  let message = response.statusText;
  if (isJSON) {
    message += ` - ${(await response.json()).message}`;
  } else {
    const text = await response.text();
    let said = text;
    try {
      said = JSON.parse(text).message || text;
    } catch {
      // it is no JSON
    }
    if (text) message += ` - ${said}`;
  }
  throw Object.assign(new Error(message), { status: response.status });
}

// Settings of plugins are kept in the browser.
class ConfigStore {
  constructor(name) {
    this.key = `settings-of-${name}`;
  }
  get() {
    return JSON.parse(localStorage.getItem(this.key) ?? 'null') ?? undefined;
  }
  set(value) {
    localStorage.setItem(this.key, JSON.stringify(value));
    dispatchEvent(new Event('settings'));
  }
  useConfig() {
    return () => {
      const [value, setValue] = React.useState(() => this.get());
      React.useEffect(() => {
        const read = () => setValue(this.get());
        addEventListener('settings', read);
        return () => removeEventListener('settings', read);
      }, []);
      return value;
    };
  }
}

function SectionBox({ title, children }) {
  return e('section', { className: 'box' }, e('h2', null, title), React.Children.toArray(children));
}

function ActionButton({ description, onClick }) {
  return e('button', { type: 'button', 'aria-label': description, onClick }, '?');
}

function Dialog({ open, onClose, title, children }) {
  const id = React.useId();
  if (!open) return null;
  return e(
    'div',
    { role: 'dialog', 'aria-labelledby': id },
    e('h1', { id }, title),
    e('button', { type: 'button', onClick: onClose }, 'Close'),
    children,
  );
}

window.pluginLib = {
  React,
  ReactJSX,
  ApiProxy: { request },
  CommonComponents: { ActionButton, Dialog, SectionBox },
  ConfigStore,
  registerDetailsViewSection: section => sections.push(section),
  registerDetailsViewHeaderAction: action => headerActions.push(action),
  registerPluginSettings: (name, component, displaySaveButton = false) =>
    settingsForms.set(name, { component, displaySaveButton }),
};

// A plugin must have been made for a version of Headlamp's own package that this one goes with.
function isCompatible({ devDependencies }) {
  const [, major, minor] = /(\d+)\.(\d+)/.exec(devDependencies?.['@kinvolk/headlamp-plugin'] ?? '') ?? [];
  return Number(major) > 0 || Number(minor) >= 8;
}

async function loadPlugins() {
  for (const { path } of await (await fetch('/plugins')).json()) {
    const source = await (await fetch(`/${path}/main.js`)).text();
    const info = await (await fetch(`/${path}/package.json`)).json();
    if (!info.name || !info.version || !isCompatible(info)) throw new Error(`plugin ${path} is not compatible`);
    new Function(`${source}\n//# sourceURL=//${path}/dist/main.js`)();
  }
}

// A details view. With page=custom it is that of custom resources, which has no sections of plugins (crd/
// CustomResourceDetails.tsx); else a view of Headlamp or of a plugin, which has them (common/Resource/Resource.tsx). What
// is read from the API server is in jsonData.
function Details() {
  const resource = {
    cluster,
    jsonData: {
      apiVersion: query.get('apiVersion') ?? 'kubevirt.io/v1',
      kind: query.get('kind') ?? 'VirtualMachine',
      metadata: { namespace: query.get('namespace'), name: query.get('name') },
    },
  };
  const shown = query.get('page') === 'custom' ? [] : sections;
  return e(
    React.Fragment,
    null,
    e('h1', null, `${resource.jsonData.kind}: ${resource.jsonData.metadata.name}`),
    e('div', { id: 'actions' }, headerActions.map(({ id, action: Action }) => e(Action, { key: id, item: resource }))),
    shown.map(({ id, section: Section }) => e('div', { key: id, id: `section-${id}` }, e(Section, { resource }))),
  );
}

function Settings({ name }) {
  const store = new ConfigStore(name);
  const { component: Form, displaySaveButton } = settingsForms.get(name);
  const [data, setData] = React.useState(() => store.get());
  return e(
    React.Fragment,
    null,
    e('h1', null, `Settings of ${name}`),
    e(Form, { data, onDataChange: setData }),
    displaySaveButton && e('button', { type: 'button', id: 'save', onClick: () => store.set(data) }, 'Save'),
  );
}

loadPlugins().then(() => {
  const name = query.get('settings');
  createRoot(document.querySelector('main')).render(name ? e(Settings, { name }) : e(Details));
});
