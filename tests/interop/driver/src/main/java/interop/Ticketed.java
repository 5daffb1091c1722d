package interop;

import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;

/** A lock with tokens. */
final class Ticketed implements Contender {
    private final RFencedLock lock;
    private final Counter counter;
    private final String name;
    private final Diary diary;

    Ticketed(RedissonClient client, String name, Diary diary) {
        lock = client.getFencedLock(name);
        counter = new Counter(client, name);
        this.name = name;
        this.diary = diary;
    }

    @Override
    public boolean pass() {
        long start = Clock.nanos();
        long token = lock.lockAndGetToken();
        long from = Clock.nanos();
        diary.waited(from - start);
        counter.count();
        diary.stay(name, from, Clock.nanos(), ALONE, token);
        lock.unlock();
        return true;
    }
}
