#include "network_machine.h"

#include <utility>

#include "states.h"

namespace sglite {
namespace {

// A position is the number of a state.
class NetworkMachine final : public Machine {
  public:
    NetworkMachine(std::shared_ptr<const Network> network, const Vocabulary& vocabulary)
        : network_(std::move(network)), states_(*network_, vocabulary) {}

    Position start() override { return {{states_.start()}}; }
    bool step(Position& at, uint8_t byte) override {
        at.at[0] = states_.next(at.at[0], byte);
        return at.at[0] != kDead;
    }
    bool complete(const Position& at) override { return states_.complete(at.at[0]); }
    bool can_go_on(const Position& at) override { return states_.can_go_on(at.at[0]); }
    int32_t cost(const Position& at) override { return states_.cost(at.at[0]); }
    Position alike(const Position& at) override { return {{states_.alike(at.at[0])}}; }
    void find_mask(const Position& at, Mask& mask) override { states_.find_mask(at.at[0], mask); }
    size_t memory() const override { return states_.memory(); }

  private:
    std::shared_ptr<const Network> network_;
    States states_;
};

}  // namespace

MakeMachine network_machines(Network network, const Vocabulary& vocabulary, bool check_bytes) {
    finish(network, vocabulary, check_bytes);
    auto shared = std::make_shared<const Network>(std::move(network));
    return [shared, &vocabulary] { return std::make_unique<NetworkMachine>(shared, vocabulary); };
}

}  // namespace sglite
