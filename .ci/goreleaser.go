//go:build ignore

// Goreleaser reads a settings file of goreleaser, and fails if it finds an unknown setting. It is
// built in a module of its own: see .ci/run. It does not check whether the settings fit together:
// the release workflow does that with "goreleaser check", which it need not compile first.
package main

import (
	"fmt"
	"os"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

func main() {
	if _, err := config.Load(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(os.Args[1], "has only known settings")
}
