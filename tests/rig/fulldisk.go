package rig

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/redis/rueidis"
)

// FillDisk makes the masters fail to save their data, as on a full disk: they refuse writes and
// PING with MISCONF until repair is called. They have to run on this machine.
func (a *Admin) FillDisk() (repair func()) {
	a.tb.Helper()
	var obstacles []string
	for _, client := range a.masters() {
		file := filepath.Join(a.setting(client, "dir"), a.setting(client, "dbfilename"))
		a.check(os.RemoveAll(file))
		a.check(os.MkdirAll(filepath.Join(file, "obstacle"), 0o700)) // no file can get the name of the directory
		obstacles = append(obstacles, file)
		a.ask(client, "CONFIG", "SET", "save", "3600 1")
		a.save(client, "it fails to save", func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "MISCONF")
		})
	}
	return func() {
		a.tb.Helper()
		for i, client := range a.masters() {
			a.check(os.RemoveAll(obstacles[i]))
			a.save(client, "it saves again", func(err error) bool { return err == nil })
		}
	}
}

// setting returns a setting of a server.
func (a *Admin) setting(client rueidis.Client, name string) string {
	a.tb.Helper()
	all, err := a.ask(client, "CONFIG", "GET", name).AsStrMap()
	a.check(err)
	return all[name]
}

// save makes a server save its data, until its answer to PING is as expected.
func (a *Admin) save(client rueidis.Client, what string, expected func(pong error) bool) {
	a.tb.Helper()
	Eventually(a.tb, healPatience, what, func() error {
		ctx, cancel := context.WithTimeout(background(), adminPatience)
		defer cancel()
		client.Do(ctx, client.B().Bgsave().Build()) // it refuses while it saves
		if err := client.Do(ctx, client.B().Ping().Build()).Error(); !expected(err) {
			return errors.Join(errors.New("the answer to PING"), err)
		}
		return nil
	})
}
