package main

import "github.com/spf13/cobra"

func newAlerts() *cobra.Command {
	cmd := &cobra.Command{
		Use: "alerts", Short: "Try alerts on your own history", GroupID: "ask", Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAlertsBacktest())
	return cmd
}
