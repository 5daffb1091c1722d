package admin

import (
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
)

// RegisterGrants has every lock given back that is granted to an owner that no longer waits. Fair
// locks and permits register themselves.
func RegisterGrants(c *core.Parts) {
	for _, s := range []*ownership.Spec{lock.InHash, lock.Mutex.Spec, rw.Write.Spec} {
		owners.RegisterGrants(c, s, nil)
	}
}
