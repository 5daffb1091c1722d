//go:build ignore

// Goreleaser reads settings of goreleaser, and fails if it does not know one of them. It is built in a module of
// its own: see .ci/run. Whether the settings fit together, "goreleaser check" finds out in the workflow of a release,
// where it need not be compiled first.
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
	fmt.Println(os.Args[1], "has known settings only")
}
