// What the plugin uses of Headlamp. Headlamp hands it over as the global pluginLib; there is nothing to install.
declare module '@kinvolk/headlamp-plugin/lib' {
  import type { ComponentType, ReactNode } from 'react';

  /** An object of the cluster on whose page a section stands. */
  export interface KubeObject {
    readonly cluster?: string;
    readonly jsonData?: {
      readonly apiVersion?: string;
      readonly kind?: string;
      readonly metadata?: { readonly namespace?: string; readonly name?: string };
    };
  }

  export function registerDetailsViewSection(section: {
    id: string;
    section: ComponentType<{ resource: KubeObject | null }>;
  }): void;

  export function registerDetailsViewHeaderAction(action: {
    id: string;
    action: ComponentType<{ item: KubeObject | null }>;
  }): void;

  export interface PluginSettingsDetailsProps {
    readonly data?: Record<string, unknown>;
    readonly onDataChange?: (data: Record<string, unknown>) => void;
  }

  export function registerPluginSettings(
    name: string,
    component: ComponentType<PluginSettingsDetailsProps>,
    displaySaveButton?: boolean,
  ): void;

  export class ConfigStore<T> {
    constructor(name: string);
    useConfig(): () => T | undefined;
  }

  export namespace ApiProxy {
    /** Resolves with the response. Rejects with an error of that status, its message the status text and the body. */
    function request(
      path: string,
      params: { isJSON: false; cluster?: string },
      autoLogoutOnAuthError: boolean,
    ): Promise<Response>;
  }

  export namespace CommonComponents {
    const SectionBox: ComponentType<{ title: string; children: ReactNode }>;
    const ActionButton: ComponentType<{ description: string; icon: string; onClick: () => void }>;
    const Dialog: ComponentType<{ open: boolean; onClose: () => void; title: string; children: ReactNode }>;
  }
}
