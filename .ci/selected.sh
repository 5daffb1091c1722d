# shellcheck shell=bash
# shellcheck disable=SC2034 # they are for whoever sources this
# Every test runs on one server. Other servers and topologies run only the tests whose result depends on
# them. Tests of the client alone, such as its deadlines, its log, or a fault on the way to the server, would give
# the same result there. Each word is the beginning of a test name.
formats='Golden Inspection WaitersAreListed ForeignData LocksOfOtherLibraries MutexBesideOther MutexRefuses ErrorsOfOther
  TokenIsRemoved EachKind WrongKind LockMeets OddNames Java Objects'
answers='KeysAreDeclared EmptyScriptCache LockAndUnlockAreTwo Latch Barrier Semaphore PermitsAre PermitsShrink PermitStats
  ReleaseTells Repeated RateLimiter LateCopy IdsLive IDNamed NotesAre NotesOutlive OneOwner SidesOf Downgrade Write
  LeasesOfReaders DeletedQueue TryLockRespects Fenced Election Once_ Cron Label_ Note_'
states='Check_ MinimalPermissions DocumentedPermissions NoChannels OutOfMemory ReadWriteLockWithoutMemory ReadOnlyReplica
  BusyServer KilledConnections ServerRestarts Open LazyConnect Close GoRedis_settings GoRedis_credentials GoRedis_users
  GoRedis_fencing GoRedis_commands GoRedis_adapter LabelFaults RefusedPing'
times='AnyLease LeaseIsRounded TimeBeyond WaitersDoNotSpin FixedLease VanishedKey WaiterWakesWhen LeaseOfAPermit
  ManyExpired HoldsOutlive KilledReader AtLeast Extend ForceUnlock ClockSetBack'
messages='MessageWakes SubscriptionComesBack SubscriptionsAre ChannelShared GivingUp LastReader AllReaders ReleaseOfMany'
contests='GoroutinesExclude ProcessesExclude FencingTokens Reentry ConcurrentReentry FairLockIsGranted FairSemaphore HistoryOfFair Locks ReadWriteLocks
  PermitSemaphores MultiLock Guest Contention MutexAndRedislock Moving'
# These start topologies of their own, whatever the backend is.
topologies='Replicas_have Replicas_without Replicas_minimal Replicas_out_of Replicas_scripts Replicas_in_a Failover Cluster
  Migration_nothing'

# those WORDS…: prints the pattern of the tests whose names begin with a word. A word without a test is an error.
those() {
  local word words
  read -r -d '' -a words <<<"$*" || true
  for word in "${words[@]}"; do
    grep -qE "^func Test$word" tests/*_test.go || { echo "no test begins with $word" >&2; return 1; }
  done
  local IFS='|'
  echo "^Test(${words[*]})"
}
