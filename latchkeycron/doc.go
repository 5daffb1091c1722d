// Package latchkeycron runs the jobs of gocron (github.com/go-co-op/gocron/v2) once in a fleet: a
// [Locker] for gocron.WithDistributedLocker, and an [Elector] for gocron.WithDistributedElector.
//
//	locker := latchkeycron.NewLocker(client)
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// With a Locker the schedulers compete for each run of each job. The Locker allows for clocks that
// differ: a scheduler that is late does not repeat a tick. With an Elector one scheduler runs all
// jobs, until it resigns or its lease ends.
//
// If a scheduler has both, gocron uses the elector only.
package latchkeycron
