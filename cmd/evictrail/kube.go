package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeFlags say which cluster is watched, and as whom.
type kubeFlags struct{ kubeconfig, context string }

func (k *kubeFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.kubeconfig, "kubeconfig", "", "kubeconfig `file`; by default $KUBECONFIG, ~/.kube/config, or the service account of the pod")
	cmd.Flags().StringVar(&k.context, "context", "", "`context` of the kubeconfig")
}

// loadConfig returns what the files of the flags say, which are read when it is asked.
func (k *kubeFlags) loadConfig() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.kubeconfig
	chosen := &clientcmd.ConfigOverrides{CurrentContext: k.context}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, chosen)
}

func (k *kubeFlags) restConfig() (*rest.Config, error) {
	config, err := k.loadConfig().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w: give --kubeconfig, or try `evictrail demo`, which needs none", err)
	}
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	return config, nil
}

// listSecrets returns the tokens and passwords of the kubeconfig, those of all contexts, and of the service account.
func (k *kubeFlags) listSecrets() (secrets, files []string) {
	if config, err := k.restConfig(); err == nil {
		secrets, files = append(secrets, config.BearerToken, config.Password), append(files, config.BearerTokenFile)
	}
	if raw, err := k.loadConfig().RawConfig(); err == nil {
		for _, user := range raw.AuthInfos {
			secrets, files = append(secrets, user.Token, user.Password), append(files, user.TokenFile)
			if user.AuthProvider != nil {
				secrets = slices.AppendSeq(secrets, maps.Values(user.AuthProvider.Config))
			}
			if user.Exec != nil {
				for _, variable := range user.Exec.Env {
					secrets = append(secrets, variable.Value)
				}
			}
		}
	}
	return secrets, files
}
