package interop;

import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** One lock that excludes. */
final class Alone implements Contender {
    private final RLock lock;
    private final Counter counter;
    private final String name;
    private final long hold; // milliseconds more than counting takes
    private final Diary diary;

    Alone(RedissonClient client, String kind, String name, long hold, Diary diary) {
        lock = Locks.open(client, kind, name);
        counter = new Counter(client, name);
        this.name = name;
        this.hold = hold;
        this.diary = diary;
    }

    @Override
    public boolean pass() throws InterruptedException {
        long start = Clock.nanos();
        lock.lock();
        long from = Clock.nanos();
        diary.waited(from - start);
        counter.count();
        Thread.sleep(hold);
        diary.stay(name, from, Clock.nanos(), ALONE, 0);
        lock.unlock();
        return true;
    }
}
