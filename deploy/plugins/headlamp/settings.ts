/** Where evictrail is, as the settings of the plugin say. */
export interface Settings {
  readonly namespace: string;
  readonly service: string;
  readonly scheme: string;
  readonly port: string;
  readonly cluster: string;
  readonly publicURL: string;
}

/** What the chart installs under the name evictrail in a namespace of that name. */
export const defaults: Settings = {
  namespace: 'evictrail',
  service: 'evictrail',
  scheme: 'https',
  port: '443',
  cluster: '',
  publicURL: '',
};

/** Reads stored settings: what is missing or empty is the default. */
export function readSettings(stored: Partial<Record<keyof Settings, unknown>> | undefined): Settings {
  const read = (key: keyof Settings): string => {
    const value = stored?.[key];
    return typeof value === 'string' && value.trim() !== '' ? value.trim() : defaults[key];
  };
  return {
    namespace: read('namespace'),
    service: read('service'),
    scheme: read('scheme'),
    port: read('port'),
    cluster: read('cluster'),
    publicURL: read('publicURL'),
  };
}

/** Returns the path by which the API server passes requests on to evictrail's service. */
export function findServiceProxy({ namespace, service, scheme, port }: Settings): string {
  const target = [scheme, service, port].map(encodeURIComponent).join(':');
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/services/${target}/proxy`;
}
