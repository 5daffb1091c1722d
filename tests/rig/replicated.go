package rig

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// Replicated is a master with replicas, for one test. Nothing promotes a replica automatically.
type Replicated struct {
	tb       place
	Master   *Server
	Replicas []*Server
}

// NewReplicated starts a master and that many replicas, and waits until all of them are in step.
// Replication lags by lag.
func NewReplicated(tb testing.TB, replicas int, lag time.Duration) *Replicated {
	tb.Helper()
	Need(tb, Topology)
	r := &Replicated{tb: here(tb), Master: Fresh(tb, "--repl-diskless-sync-delay", "0", "--repl-timeout", "600")}
	link := NewLink(tb, r.Master)
	if lag > 0 {
		link.DelayReplies(lag)
	}
	host, port, _ := net.SplitHostPort(link.Addr())
	for range replicas {
		r.Replicas = append(r.Replicas, Fresh(tb, "--replicaof", host, port, "--repl-timeout", "600"))
	}
	r.AwaitInStep()
	return r
}

// AwaitInStep waits until every replica confirms what the master writes.
func (r *Replicated) AwaitInStep() {
	r.tb.Helper()
	client, admin := r.Master.Raw(r.tb), NewAdmin(r.tb, r.Master)
	Eventually(r.tb, startPatience, "the replicas are in step", func() error {
		b := client.B()
		results := client.DoMulti(background(),
			b.Set().Key("rig-in-step").Value("").Px(time.Second).Build(),
			b.Wait().Numreplicas(int64(len(r.Replicas))).Timeout(startPatience.Milliseconds()/2).Build()) // they may lag
		n, err := results[1].AsInt64()
		// Everything that was written before a replica connected counts as confirmed.
		info := admin.Text("INFO", "replication")
		if err == nil && (n < int64(len(r.Replicas)) || strings.Contains(info, "offset=0,")) {
			err = fmt.Errorf("%d of %d: %s", n, len(r.Replicas), info)
		}
		return err
	})
}

// Promote makes a replica a master, as a failover would.
func (r *Replicated) Promote(i int) *Server {
	r.tb.Helper()
	NewAdmin(r.tb, r.Replicas[i]).Do("REPLICAOF", "NO", "ONE")
	return r.Replicas[i]
}

// Swap makes a replica the master, makes the former master its replica, and returns the new master.
// Nothing is lost: the former master executes no writes from the time at which it refuses them
// until meanwhile has returned.
func (r *Replicated) Swap(i int, meanwhile func(master *Server)) *Server {
	r.tb.Helper()
	former, next := NewAdmin(r.tb, r.Master), r.Replicas[i]
	former.Do("CLIENT", "PAUSE", "60000", "WRITE")
	offset := func(admin *Admin, field string) string {
		_, rest, _ := strings.Cut(admin.Text("INFO", "replication"), field+":")
		text, _, _ := strings.Cut(rest, "\r\n")
		return text
	}
	admin := NewAdmin(r.tb, next)
	Eventually(r.tb, startPatience, "the replica has everything", func() error {
		if want, got := offset(former, "master_repl_offset"), offset(admin, "slave_repl_offset"); want != got {
			return fmt.Errorf("%s of %s bytes", got, want)
		}
		return nil
	})
	r.Promote(i)
	meanwhile(next)
	host, port, _ := net.SplitHostPort(next.Addr())
	former.Do("REPLICAOF", host, port)
	former.Do("CLIENT", "UNPAUSE")
	Eventually(r.tb, startPatience, "the former master follows", func() error {
		if info := former.Text("INFO", "replication"); !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("%s", info)
		}
		return nil
	})
	return next
}
