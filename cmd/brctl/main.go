// Command brctl schedules and runs backups of TiDB clusters.
package main

import (
	"os"

	"github.com/brctl/brctl/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
