let prefix = "";

module.exports = {
  async initialize(config, dependencies) {
    prefix = config.Prefix;
    dependencies.vcpLogFunctions.pushVcpLog("initialized");
  },
  async processMessages(messages, config) {
    console.log("this is no answer");
    const note = `${prefix} ${messages.length} messages${config.Loud === true ? "!" : ""}`;
    return [{ role: "system", content: note }, ...messages];
  },
};
