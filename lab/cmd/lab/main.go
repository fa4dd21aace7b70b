// Command lab runs the test bed of brctl and talks to one that runs.
package main

import (
	"os"

	"github.com/brctl/brctl/lab/internal/cli"
)

func main() { os.Exit(cli.Main()) }
