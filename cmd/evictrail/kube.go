package main

import (
	"fmt"

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

func (k *kubeFlags) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: k.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w: give --kubeconfig, or try `evictrail demo`, which needs none", err)
	}
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	return config, nil
}
