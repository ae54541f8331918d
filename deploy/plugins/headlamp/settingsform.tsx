import * as React from 'react';

import type { PluginSettingsDetailsProps } from '@kinvolk/headlamp-plugin/lib';

import { defaults, type Settings } from './settings';

const fields: readonly { readonly key: keyof Settings; readonly label: string; readonly about: string }[] = [
  { key: 'namespace', label: 'Namespace', about: 'The namespace of evictrail’s service.' },
  { key: 'service', label: 'Service', about: 'The name of the service.' },
  { key: 'scheme', label: 'Scheme', about: 'https or http, as the service speaks.' },
  { key: 'port', label: 'Port', about: 'The port of the service, by number or name.' },
  { key: 'cluster', label: 'Cluster', about: 'The name of the cluster in evictrail, where its database has several.' },
  {
    key: 'publicURL',
    label: 'Address for people',
    about: 'Where evictrail is opened in a browser, such as https://evictrail.example. Empty: no links.',
  },
];

/** The form of the plugin's settings. Headlamp stores what it reports, and shows the button to save. */
export function SettingsForm({ data, onDataChange }: PluginSettingsDetailsProps): React.ReactElement {
  return (
    <div style={{ display: 'grid', gap: '1rem', maxWidth: '36rem', padding: '1rem 0' }}>
      {fields.map(({ key, label, about }) => {
        const id = `evictrail-${key}`;
        const value = data?.[key];
        return (
          <div key={key}>
            <label htmlFor={id} style={{ fontWeight: 600, display: 'block' }}>
              {label}
            </label>
            <input
              id={id}
              aria-describedby={`${id}-about`}
              value={typeof value === 'string' ? value : ''}
              placeholder={defaults[key]}
              onChange={event => onDataChange?.({ ...data, [key]: event.target.value })}
              style={{
                font: 'inherit',
                color: 'inherit',
                background: 'transparent',
                border: '1px solid currentColor',
                borderRadius: '4px',
                padding: '0.4rem 0.5rem',
                width: '100%',
                boxSizing: 'border-box',
              }}
            />
            <span id={`${id}-about`} style={{ fontSize: '0.9em' }}>
              {about}
            </span>
          </div>
        );
      })}
    </div>
  );
}
